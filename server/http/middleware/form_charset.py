"""Check of the character sets that forms declare, and of the fields of multipart forms."""

import codecs

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.raw_headers import header
from server.http.responses.error_formats import ErrorFormats
from server.http.responses.errors import unread_error_response
from server.interface.errors import InvalidRequest

_FORMS = (b"multipart/form-data", b"application/x-www-form-urlencoded")
_JSON = "application/json"
_CHARSETS = (b"utf-8", b"utf8", b"us-ascii", b"ascii", b"")


class FormCharset:
    """ASGI middleware that rejects forms in other character sets than UTF-8 and US-ASCII before they are decoded.

    Starlette decodes fields with any codec of Python that the form names. Some are quadratic (punycode: 240 KB take
    seconds on the event loop), and some raise other errors than UnicodeDecodeError. Fields of multipart forms that are
    not in the form's character set are rejected as well: Starlette would read them as Latin-1, all other letters
    included.
    """

    def __init__(self, app: ASGIApp, formats: ErrorFormats) -> None:
        self._app = app
        self._formats = formats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request; pass on other scopes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = header(scope, b"content-type")
        if declared == _JSON:  # the most frequent one, without its cost of parsing
            await self._app(scope, receive, send)
            return
        media_type, options = parse_options_header(declared)
        if media_type not in _FORMS:
            await self._app(scope, receive, send)
            return
        if (charset := _charset(options)) not in _CHARSETS:
            await unread_error_response(_invalid(charset), self._formats.of(scope), scope)(scope, receive, send)
            return
        boundary = options.get(b"boundary")
        if media_type == b"multipart/form-data" and boundary:
            try:
                receive = _checked(receive, boundary, "ASCII" if b"ascii" in charset else "UTF-8")
            except FormParserError:  # Starlette's parser raises it, too, and does not handle it
                error = InvalidRequest("the boundary of a form must have at most 256 bytes")
                await unread_error_response(error, self._formats.of(scope), scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Parts:
    """Check of the form's parts, by a parser that keeps headers only."""

    def __init__(self, boundary: bytes, codec: str) -> None:
        self._codec, self._decoder = codec, codecs.getincrementaldecoder(codec)()
        self._name, self._value = bytearray(), bytearray()
        self._is_file = False
        self._declared = b""
        self.problem: InvalidRequest | None = None
        self._parser: MultipartParser | None = MultipartParser(
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

    def write(self, chunk: bytes) -> None:
        """Read a chunk of the body. Malformed forms are left to the form's own parser."""
        if self._parser is not None:
            try:
                self._parser.write(chunk)
            except FormParserError:
                self._parser = None

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
            self.problem = _invalid(self._declared)

    def _read(self, data: bytes, start: int, end: int, *, is_end: bool = False) -> None:
        if self._is_file or self.problem is not None:
            return
        try:
            self._decoder.decode(data[start:end], is_end)
        except UnicodeDecodeError as error:
            self.problem = InvalidRequest(f"a field of the form is not {self._codec}: {error.reason}")


def _checked(receive: Receive, boundary: bytes, codec: str) -> Receive:
    parts = _Parts(boundary, codec)

    async def receive_checked() -> Message:
        message = await receive()
        parts.write(message.get("body", b""))
        if parts.problem is not None:
            raise HTTPException(400, str(parts.problem), {"Connection": "close"})
        return message

    return receive_checked


def _charset(options: dict[bytes, bytes]) -> bytes:
    return options.get(b"charset", b"").strip().lower()


def _invalid(charset: bytes) -> InvalidRequest:
    shown = charset[:60].decode("latin-1")
    return InvalidRequest(f"the charset of a form must be UTF-8. Given: {shown}")
