import asyncio
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from server.http.middleware.body import BodyLimits, ValueCounter

MAX_VALUES = 5
CLOSE = {"Connection": "close"}
FORM = "application/x-www-form-urlencoded"


def _read(
    parts: Sequence[bytes], media_type: str = "application/json", length: str = "", status: int = 422
) -> list[bytes] | None:
    """Return the parts of a body that the application receives before the middleware rejects it with `status`."""
    pending = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    received: list[bytes] = []

    async def receive() -> Message:
        return pending.pop(0)

    async def send(_: Message) -> None:
        raise AssertionError("the middleware sends nothing")

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        while pending:
            part = (await receive())["body"]
            received.append(part)

    headers = [(b"content-type", media_type.encode()), (b"content-length", length.encode())]
    scope = {"type": "http", "path": "/v1/translate", "headers": headers}
    try:
        asyncio.run(BodyLimits(app, 1_000_000, max_values=MAX_VALUES)(scope, receive, send))
    except HTTPException as error:
        return None if (error.status_code, error.headers) != (status, CLOSE) else received
    return received


def _num_separators(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(len(value) - 1, 0) + sum(map(_num_separators, value.values()))
    return 1 + max(len(value) - 1, 0) + sum(map(_num_separators, value)) if isinstance(value, list) else 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\[{,ä'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('k"\\,'), inner),
)


@settings(max_examples=50, derandomize=True, deadline=None)
@given(JSON, st.integers(1, 9))
def test_separators_are_counted_outside_strings_however_the_body_is_divided(value: object, size: int) -> None:
    body, counter = json.dumps(value, ensure_ascii=False).encode(), ValueCounter()
    counted = [counter.add(body[begin : begin + size]) for begin in range(0, len(body), size)]
    assert counted[-1] == _num_separators(value)
    assert counted == sorted(counted)


def test_a_body_with_more_values_is_rejected_at_the_part_that_exceeds_them() -> None:
    assert _read([b"[0,0,", b"0,0]", b"  "]) == [b"[0,0,", b"0,0]", b"  "]
    assert _read([b"[0,0,", b"0,0,0,0]", b"  "]) == [b"[0,0,"]
    assert _read([b"[" + b"0," * 20_000]) == []


def test_numbers_of_very_many_digits_are_rejected() -> None:
    assert _read([b"[" + b"1" * 1000 + b"]"]) != []
    assert _read([b"[" + b"1" * 1001 + b"]"]) == []
    assert _read([b'["' + b"1" * 1001 + b'"]']) != []


@pytest.mark.parametrize(
    ("media_type", "beginning", "counts"),
    [
        (FORM, b"q=", False),
        (FORM, b" {", True),
        (FORM + "; charset=utf-8", b" " * 256 + b"{", False),
        (FORM, b" " * 255 + b"{", True),
        (FORM, b"\xef\xbb\xbf {", True),
        ("multipart/form-data; boundary=x", b"{", False),
        ("text/plain", b"q=", True),
        ("", b"{", True),
    ],
)
def test_what_routes_read_as_json_is_counted(media_type: str, beginning: bytes, counts: bool) -> None:
    parts = [beginning[:1], beginning[1:], b"," * 10]
    assert (_read(parts, media_type) == parts) == (not counts)
    assert (_read([beginning, b"," * 10], media_type) == [beginning, b"," * 10]) == (not counts)


def test_a_body_that_states_fewer_bytes_than_values_is_not_counted() -> None:
    assert _read([b"[[[[["], length="5") == [b"[[[[["]
    assert _read([b"[[[[[["], length="6") == []
    assert _read([b"[[[[[["], length="x") == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-le"])
def test_json_in_another_encoding_is_rejected_whatever_its_length(encoding: str) -> None:
    body = "{}".encode(encoding)
    assert _read([body], status=400) == []
    assert _read([body], length="4", status=400) == []
    assert _read([body], "multipart/form-data; boundary=x") == [body]
