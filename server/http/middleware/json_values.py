"""Limit on the number of values in a JSON body, applied while it is read."""

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.raw_headers import header
from server.http.requests.parameters import BEFORE_JSON, MAX_BLANK_BYTES, looks_like_json

_PIECE_BYTES = 16 * 1024
_MAX_DIGITS = 1000  # a floating point number has at most some 310 before its point
_NOT_UTF_8 = "JSON must be UTF-8; the body has zero bytes, as UTF-16 and UTF-32 have"
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (_MAX_DIGITS + 1))


class JsonValues:
    """ASGI middleware that returns 422 for a JSON body of more than `max_values` values, and 400 for one in UTF-16.

    A parser holds the interpreter for the whole of a body: 1.3 million empty strings in 3.9 MB block the event loop.
    Python's parser also reads UTF-16 and UTF-32, whose quotation marks and digits cannot be found byte by byte.
    """

    def __init__(self, app: ASGIApp, max_values: int) -> None:
        self._app = app
        self._max_values = max_values

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        media_type = header(scope, b"content-type").partition(";")[0].strip().casefold()
        if media_type == "multipart/form-data":
            await self._app(scope, receive, send)
            return
        announced = header(scope, b"content-length")
        is_short = announced.isdecimal() and int(announced) <= min(self._max_values, _MAX_DIGITS)  # for either
        counter = ValueCounter()
        # Routes read a form that begins like JSON as JSON; a real form may have any number of commas.
        is_json = None if media_type == "application/x-www-form-urlencoded" else True
        beginning = b""

        async def receive_counted() -> Message:
            nonlocal is_json, beginning
            message = await receive()
            body = message.get("body", b"")
            if is_json is None:
                beginning += body[: MAX_BLANK_BYTES - len(beginning)]
                if beginning.lstrip(BEFORE_JSON) or len(beginning) == MAX_BLANK_BYTES:
                    is_json = looks_like_json(beginning)
            if is_json is False:
                return message
            if b"\0" in body:
                raise HTTPException(400, _NOT_UTF_8, {"Connection": "close"})
            if is_short:
                return message
            for begin in range(0, len(body), _PIECE_BYTES):
                if counter.add(body[begin : begin + _PIECE_BYTES]) > self._max_values:
                    raise _rejection(f"the body must have at most {self._max_values} values; send it in parts")
                if counter.has_long_number:
                    raise _rejection(f"a number must have at most {_MAX_DIGITS} digits")
            return message

        await self._app(scope, receive_counted, send)


def _rejection(message: str) -> HTTPException:
    return HTTPException(422, message, {"Connection": "close"})  # the rest of the body is not read


class ValueCounter:
    """Counts the separators of JSON values outside strings, in a body that comes in pieces.

    Also finds numbers of very many digits, which Python converts in quadratic time; not those that a border of pieces
    divides into shorter ones.
    """

    def __init__(self) -> None:
        self.has_long_number = False
        self._num_values = 0
        self._is_in_string = False
        self._is_escaped = False  # the last piece ended with a backslash that escapes the next byte

    def add(self, piece: bytes) -> int:
        """Read a piece and return the number of separators so far."""
        if self._is_escaped and piece:
            piece = piece[1:]
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"")
            self._is_escaped = piece.endswith(b"\\")
            piece = piece.replace(b'\\"', b"")
        else:
            self._is_escaped = False
        parts = piece.split(b'"')
        outside = parts[1 if self._is_in_string else 0 :: 2]
        for part in outside:
            if len(part) > _MAX_DIGITS and _LONG_NUMBER.search(part):
                self.has_long_number = True
        self._num_values += sum([part.count(b",") + part.count(b"[") + part.count(b"{") for part in outside])
        self._is_in_string ^= len(parts) % 2 == 0
        return self._num_values
