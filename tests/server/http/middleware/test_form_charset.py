import asyncio
from collections.abc import Sequence

import pytest
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from server.http.middleware.body import BodyLimits

MULTIPART = "multipart/form-data; boundary=b"
_MESSAGES = (
    "the charset of a form must be UTF-8. Given: punycode",
    "a field of the form is not UTF-8: invalid continuation byte",
    "a field of the form is not UTF-8: invalid start byte",
    "a field of the form is not UTF-8: unexpected end of data",
    "a field of the form is not ASCII: ordinal not in range(128)",
)


def _status(content_type: str, body: Sequence[bytes] = (b"",)) -> int:
    """Return 200 if the application receives the whole body, else the status of the rejection."""
    pending = [{"type": "http.request", "body": part} for part in body]
    is_received = False

    async def receive() -> Message:
        return pending.pop(0)

    async def send(_: Message) -> None:
        raise AssertionError("the middleware sends nothing")

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        nonlocal is_received
        for _part in body:
            await receive()
        is_received = True

    headers = [(b"content-type", content_type.encode())]
    scope = {"type": "http", "method": "POST", "path": "/translate", "headers": headers}
    try:
        asyncio.run(BodyLimits(app, 1_000_000)(scope, receive, send))
    except HTTPException as error:
        return error.status_code if error.detail in _MESSAGES else 0
    return 200 if is_received else 0


@pytest.mark.parametrize(
    ("content_type", "is_accepted"),
    [
        ("application/x-www-form-urlencoded", True),
        ("application/x-www-form-urlencoded; charset=UTF-8", True),
        ("application/x-www-form-urlencoded; charset=punycode", False),
        (MULTIPART, True),
        (MULTIPART + "; charset=ascii", True),
        (MULTIPART + "; charset=idna", False),
        ("multipart/form-data", True),
        ("multipart/form-data; boundary=" + "b" * 256, True),
        ("application/json", True),
        ("application/json; charset=punycode", True),
        ("text/plain; charset=punycode", True),
        ("", True),
    ],
)
def test_forms_in_other_character_sets_are_rejected(content_type: str, is_accepted: bool) -> None:
    assert (_status(content_type) == 200) == is_accepted


def _part(charset: str, file: str = "", content: bytes = b"Tea.") -> bytes:
    declared = f"Content-Type: text/plain{charset}\r\n" if charset else ""
    head = f'--b\r\nContent-Disposition: form-data; name="q"{file}\r\n{declared}\r\n'
    return head.encode() + content + b"\r\n"


@pytest.mark.parametrize(
    ("parts", "is_accepted"),
    [
        ([_part("")], True),
        ([_part("; charset=utf-8")], True),
        ([_part("; charset=punycode")], False),
        ([_part(""), _part("; charset=punycode")], False),
        ([_part("; charset=punycode", '; filename="a.txt"')], True),
        ([_part("; charset=punycode", '; filename="a.txt"'), _part("")], True),
        ([_part("", '; filename="a.txt"'), _part("; charset=punycode")], False),
    ],
)
@pytest.mark.parametrize("size", [7, 1000])
def test_fields_of_a_form_in_other_character_sets_are_rejected(
    parts: list[bytes], is_accepted: bool, size: int
) -> None:
    body = b"".join(parts) + b"--b--\r\n"
    chunks = [body[begin : begin + size] for begin in range(0, len(body), size)]
    assert _status(MULTIPART, chunks) == (200 if is_accepted else 400)


@pytest.mark.parametrize(
    ("parts", "charset", "is_accepted"),
    [
        ([_part("", content="Grüße".encode())], "", True),
        ([_part("", content="Grüße".encode())], "; charset=utf-8", True),
        ([_part("", content="Grüße".encode())], "; charset=us-ascii", False),
        ([_part("", content="Grüße".encode("latin-1"))], "", False),
        ([_part(""), _part("", content=b"Gr\xc3\xbc\xc3")], "", False),
        ([_part("", content=b"\xc3"), _part("", content=b"\xbc")], "", False),
        ([_part("", '; filename="a.txt"', b"\xff"), _part("")], "", True),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_fields_of_a_form_have_its_character_set(
    parts: list[bytes], charset: str, is_accepted: bool, size: int
) -> None:
    body = b"".join(parts) + b"--b--\r\n"
    chunks = [body[begin : begin + size] for begin in range(0, len(body), size)]
    assert _status(MULTIPART + charset, chunks) == (200 if is_accepted else 400)


def test_a_malformed_form_is_left_to_its_own_parser() -> None:
    assert _status(MULTIPART, [b"--x\r\nno form", b"at all"]) == 200
