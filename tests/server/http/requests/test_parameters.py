import asyncio
import json
from collections.abc import Mapping

import pytest
from fastapi import Request
from starlette.types import Message

from server.http.requests.parameters import Parameters, json_names, looks_like_json, read_parameters
from server.interface.errors import InvalidRequest

FORM = "application/x-www-form-urlencoded"


def _read(body: bytes, media_type: str = FORM, query: bytes = b"", max_fields: int = 10) -> Parameters:
    async def receive() -> Message:
        return {"type": "http.request", "body": body}

    headers = [(b"content-type", media_type.encode())]
    scope = {"type": "http", "method": "POST", "headers": headers, "query_string": query}
    return asyncio.run(read_parameters(Request(scope, receive), max_fields))


def _json(values: Mapping[str, object]) -> Parameters:
    return _read(json.dumps(values).encode(), "application/json")


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON; charset=utf-8", "text/plain", FORM, ""])
def test_a_body_that_begins_like_json_is_json_and_the_query_is_not_read(media_type: str) -> None:
    sent = _read(b' \n{"q": "Tea.", "n": null}', media_type, query=b"q=Coffee.&source=en")
    assert (sent.is_json, sent.texts("q"), sent.text("source"), sent.has("n")) == (True, ["Tea."], None, False)
    assert sent.as_json() == {"q": "Tea."}


def test_blank_bytes_before_json_are_bounded() -> None:
    assert looks_like_json(b" " * 255 + b"[")
    assert not looks_like_json(b" " * 256 + b"[")
    assert not looks_like_json(b'"{"')


def test_a_form_has_its_fields_behind_those_of_the_query() -> None:
    sent = _read(b"q=a+b&q=%C3%A4&x[]=1&leer=" + "&roh=ß".encode(), query=b"q=first")
    assert not sent.is_json
    assert sent.texts("q") == ["first", "a b", "ä"]
    assert (sent.text("q"), sent.text("roh"), sent.text("none")) == ("first", "ß", None)
    assert (sent.text("leer"), sent.has("leer"), sent.has("x[]")) == ("", False, True)
    assert (sent.texts("x"), sent.is_list("x"), sent.is_list("q"), sent.is_list("roh")) == (["1"], True, True, False)
    assert sent.names() == ["q", "x", "leer", "roh"]


def test_a_multipart_form_has_its_fields_behind_those_of_the_query_and_its_file() -> None:
    lines = (
        '--b\r\nContent-Disposition: form-data; name="q"\r\n\r\nTea.\r\n'
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nx\r\n--b--\r\n'
    )
    sent = _read(lines.encode(), "multipart/form-data; boundary=b", query=b"q=first")
    assert sent.texts("q") == ["first", "Tea."]
    file = sent.file("file")
    assert file is not None
    assert file.filename == "a.txt"
    assert sent.file("q") is None
    with pytest.raises(InvalidRequest, match="`file` must be a string"):
        sent.text("file")
    asyncio.run(file.close())


def test_fields_of_a_form_are_limited_in_number_and_size() -> None:
    assert len(_read(b"&".join([b"q=a"] * 10)).texts("q")) == 10
    with pytest.raises(InvalidRequest, match="Maximum number of fields is 10"):
        _read(b"&".join([b"q=a"] * 11))
    with pytest.raises(InvalidRequest, match="Maximum number of fields is 10"):
        _read(b"", query=b"&".join([b"q=a"] * 11))
    assert len(_read(b"q=" + b"a" * (2**20 - 2)).texts("q")[0]) == 2**20 - 2
    with pytest.raises(InvalidRequest, match="exceeded maximum size of 1024KB"):
        _read(b"x=1&q=" + b"a" * (2**20 - 1))


@pytest.mark.parametrize("body", [b"q=%ff", b"q=\xff"])
def test_a_form_that_is_not_utf_8_is_rejected(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match="not UTF-8"):
        _read(body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[1]", "Invalid JSON format"),
        (b"{", "the body is not JSON"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": ' + b"[" * 200_000, "nested too deeply"),
        (b'{"a": "\xff"}', "the body is not JSON"),
    ],
)
def test_json_that_is_no_object_is_rejected(body: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        _read(body, "application/json")
    assert list(json_names({}, body)) == []


def test_texts_are_strings_without_lone_surrogates() -> None:
    sent = _json({"one": "a\ud800", "list": ["a", "b"], "none": [], "number": 1, "mixed": ["a", 1]})
    assert sent.text("one") == "a\ufffd"
    assert (sent.texts("list"), sent.is_list("list"), sent.is_list("one")) == (["a", "b"], True, False)
    assert (sent.has("none"), sent.text("none")) == (False, None)
    for name, described in (("number", "`number`"), ("mixed", "`mixed` item 1")):
        with pytest.raises(InvalidRequest, match=f"{described} must be a string"):
            sent.texts(name)


WRONG = "wrong"


@pytest.mark.parametrize(
    ("value", "integer", "number", "flag", "word"),
    [
        (0, 0, 0.0, False, "0"),
        (7, 7, 7.0, WRONG, "7"),
        (2.0, 2, 2.0, WRONG, WRONG),
        (2.5, WRONG, 2.5, WRONG, WRONG),
        (True, WRONG, WRONG, True, "1"),
        ("12", 12, 12.0, WRONG, "12"),
        ("0.5", WRONG, 0.5, WRONG, "0.5"),
        ("true", WRONG, WRONG, True, "true"),
        ("inf", WRONG, WRONG, WRONG, "inf"),
        (10**400, 10**400, WRONG, WRONG, str(10**400)),
        ("", None, None, WRONG, ""),
        (None, None, None, None, None),
        ([1], WRONG, WRONG, WRONG, WRONG),
    ],
)
def test_numbers_and_flags_are_read_from_text_as_well(
    value: object, integer: object, number: object, flag: object, word: object
) -> None:
    sent = _json({"v": value})
    for read, expected in ((sent.integer, integer), (sent.number, number), (sent.flag, flag), (sent.word, word)):
        if expected is WRONG:
            with pytest.raises((ValueError, InvalidRequest)):
                read("v")
        else:
            assert read("v") == expected
            assert type(read("v")) is type(expected)
