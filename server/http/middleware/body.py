"""Limits on request bodies, applied while they are received: size, memory, JSON values, character sets of forms."""

import codecs
import re
from collections.abc import Callable, Mapping

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.requests.parameters import BEFORE_JSON, MAX_BLANK_BYTES, header, looks_like_json
from server.http.responses.errors import retry_after
from server.http.state import RequestRecord, UnreadBytes
from server.interface.errors import QueueFull

_PIECE_BYTES = 16 * 1024
_MAX_DIGITS = 1000  # a floating point number has at most some 310 before its point
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % (_MAX_DIGITS + 1))
_MULTIPART, _URLENCODED = b"multipart/form-data", b"application/x-www-form-urlencoded"
_CHARSETS = (b"utf-8", b"utf8", b"us-ascii", b"ascii", b"")

Check = Callable[[bytes], None]


class BodyLimits:
    """ASGI middleware that raises an `HTTPException` while a body is received that exceeds a limit.

    * 413 for more than `max_body_bytes`, or the bytes in `upload_bytes` for paths that accept files.
    * 429 while `memory` has no room for it. Without that, a thousand connections that send bodies of 4 MB slowly, and
      never the last byte, hold 4 GB. Uploads are not counted: they are on disk, and limited with the documents.
    * 422 for JSON of more than `max_values` values, and 400 for JSON in UTF-16. A parser holds the interpreter for the
      whole of a body: 1.3 million empty strings in 3.9 MB block the event loop. Python's parser also reads UTF-16 and
      UTF-32, whose quotation marks and digits cannot be found byte by byte.
    * 400 for forms in other character sets than UTF-8 and US-ASCII, and for fields that are not in the form's.
      Starlette decodes with any codec of Python that a form names. Some are quadratic (punycode: 240 KB take seconds on
      the event loop), and some raise other errors than UnicodeDecodeError.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_body_bytes: int,
        upload_bytes: Mapping[str, int] | None = None,
        memory: UnreadBytes | None = None,
        max_values: int | None = None,
        raw_bytes: Mapping[str, int] | None = None,
    ) -> None:
        """A body for a path in `raw_bytes` is a file of any kind, up to this size."""
        self._app = app
        self._raw_bytes = raw_bytes or {}
        self._max_body_bytes = max_body_bytes
        self._upload_bytes = upload_bytes or {}
        self._memory = memory
        self._max_values = max_values

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        checks: list[Check] | None = None
        held: dict[str, int] = {}  # by client: an API key is known only after the head

        async def receive_checked() -> Message:
            nonlocal checks
            if checks is None:
                checks = self._checks(scope, held)
            message = await receive()
            if body := message.get("body", b""):
                for check in checks:
                    check(body)
            return message

        try:
            await self._app(scope, receive_checked, send)
        finally:
            for client, num_bytes in held.items():
                assert self._memory is not None
                self._memory.remove(client, num_bytes)

    def _checks(self, scope: Scope, held: dict[str, int]) -> list[Check]:
        """Return the checks of a body, each of which is called with every part of it."""
        announced = header(scope, b"content-length")
        raw = self._raw_bytes.get(scope["path"])
        limit = raw or self._upload_bytes.get(scope["path"], self._max_body_bytes)
        num_announced = int(announced) if announced.isdecimal() else None
        if num_announced is not None and num_announced > limit:
            raise _too_large(announced, limit)
        checks = [_size_check(limit)]
        if raw is not None:
            return checks
        if self._memory is not None and scope["path"] not in self._upload_bytes:
            checks.append(_memory_check(self._memory, scope["state"]["record"], held))
        media_type, options = parse_options_header(header(scope, b"content-type"))
        is_form = media_type in (_MULTIPART, _URLENCODED)
        if is_form and (charset := _charset(options)) not in _CHARSETS:
            raise _wrong_charset(charset)
        if media_type == _MULTIPART:
            if boundary := options.get(b"boundary"):
                checks.append(FormParts(boundary, "ASCII" if b"ascii" in _charset(options) else "UTF-8").add)
        elif self._max_values is not None:
            is_short = num_announced is not None and num_announced <= min(self._max_values, _MAX_DIGITS)
            # Routes read a form that begins like JSON as JSON; a real form may have any number of commas.
            checks.append(JsonCheck(self._max_values, is_short=is_short, is_json=None if is_form else True).add)
        return checks


def _size_check(limit: int) -> Check:
    num_bytes = 0

    def check(body: bytes) -> None:
        nonlocal num_bytes
        num_bytes += len(body)
        if num_bytes > limit:
            raise _too_large(f"more than {limit}", limit)

    return check


def _memory_check(memory: UnreadBytes, record: RequestRecord, held: dict[str, int]) -> Check:
    def check(body: bytes) -> None:
        try:
            memory.add(record.client, len(body))
        except QueueFull as full:
            raise _rejection(429, str(full), {"Retry-After": retry_after(full)}) from full
        held[record.client] = held.get(record.client, 0) + len(body)

    return check


class JsonCheck:
    """Check of JSON that comes in pieces, by the separators of values outside strings.

    Also finds numbers of very many digits, which Python converts in quadratic time; not those that a border of pieces
    divides into shorter ones. With `is_json` None, the beginning of the body decides whether it is JSON. The values of
    a body that `is_short` are not counted: it has fewer bytes than it may have values.
    """

    def __init__(self, max_values: int, *, is_short: bool = False, is_json: bool | None = True) -> None:
        self._max_values, self._is_short, self._is_json = max_values, is_short, is_json
        self._beginning = b""
        self.num_values = 0
        self._is_in_string = False
        self._is_escaped = False  # the last piece ended with a backslash that escapes the next byte

    def add(self, body: bytes) -> None:
        """Read a part of the body."""
        if self._is_json is None:
            self._beginning += body[: MAX_BLANK_BYTES - len(self._beginning)]
            if self._beginning.lstrip(BEFORE_JSON) or len(self._beginning) == MAX_BLANK_BYTES:
                self._is_json = looks_like_json(self._beginning)
        if self._is_json is False:
            return
        if b"\0" in body:
            raise _rejection(400, "JSON must be UTF-8; the body has zero bytes, as UTF-16 and UTF-32 have")
        for begin in range(0, 0 if self._is_short else len(body), _PIECE_BYTES):
            self._count(body[begin : begin + _PIECE_BYTES])

    def _count(self, piece: bytes) -> None:
        piece = piece[self._is_escaped :]
        self._is_escaped = False
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"")
            self._is_escaped = piece.endswith(b"\\")
            piece = piece.replace(b'\\"', b"")
        parts = piece.split(b'"')
        outside = parts[self._is_in_string :: 2]
        self._is_in_string ^= len(parts) % 2 == 0
        self.num_values += sum([part.count(b",") + part.count(b"[") + part.count(b"{") for part in outside])
        if self.num_values > self._max_values:
            raise _rejection(422, f"the body must have at most {self._max_values} values; send it in parts")
        if any(len(part) > _MAX_DIGITS and _LONG_NUMBER.search(part) for part in outside):
            raise _rejection(422, f"a number must have at most {_MAX_DIGITS} digits")


class FormParts:
    """Check of a multipart form's fields, by a parser that keeps headers only.

    Starlette would read fields that are not in the form's character set as Latin-1, all other letters included.
    """

    def __init__(self, boundary: bytes, codec: str) -> None:
        self._codec, self._decoder = codec, codecs.getincrementaldecoder(codec)()
        self._name, self._value = bytearray(), bytearray()
        self._is_file = False
        self._declared = b""
        self._problem: HTTPException | None = None
        self._parser: MultipartParser | None = None
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": lambda data, start, end: self._name.extend(data[start:end]),
                    "on_header_value": lambda data, start, end: self._value.extend(data[start:end]),
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._read,
                    "on_part_end": lambda: self._read(b"", 0, 0, is_end=True),
                },
            )
        except FormParserError:  # the form's own parser has the same limit
            return

    def add(self, body: bytes) -> None:
        """Read a piece. Malformed forms are left to the form's own parser."""
        if self._parser is not None:
            try:
                self._parser.write(body)
            except FormParserError:
                self._parser = None
        if self._problem is not None:
            raise self._problem

    def _begin(self) -> None:
        self._is_file, self._declared = False, b""

    def _end_header(self) -> None:
        name = bytes(self._name).lower()
        _, options = parse_options_header(bytes(self._value))
        if name == b"content-disposition":
            self._is_file = b"filename" in options
        elif name == b"content-type":
            self._declared = _charset(options)
        self._name.clear()
        self._value.clear()

    def _end_headers(self) -> None:
        # The content of a file is not decoded as a field; documents detect their own encoding.
        if not self._is_file and self._declared not in _CHARSETS:
            self._problem = _wrong_charset(self._declared)

    def _read(self, data: bytes, start: int, end: int, *, is_end: bool = False) -> None:
        if self._is_file or self._problem is not None:
            return
        try:
            self._decoder.decode(data[start:end], is_end)
        except UnicodeDecodeError as error:
            self._problem = _rejection(400, f"a field of the form is not {self._codec}: {error.reason}")


def _charset(options: dict[bytes, bytes]) -> bytes:
    return options.get(b"charset", b"").strip().lower()


def _wrong_charset(charset: bytes) -> HTTPException:
    return _rejection(400, f"the charset of a form must be UTF-8. Given: {charset[:60].decode('latin-1')}")


def _too_large(size: str, limit: int) -> HTTPException:
    return _rejection(413, f"the body must have at most {limit} bytes; send it in parts. Given: {size}")


def _rejection(status: int, message: str, headers: Mapping[str, str] | None = None) -> HTTPException:
    """Return an error that ends the connection: the rest of the body is not read."""
    return HTTPException(status, message, {"Connection": "close", **(headers or {})})
