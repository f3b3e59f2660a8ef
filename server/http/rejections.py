"""Error responses below the application, to requests that are not parsed."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

from server.http.responses.error_formats import NATIVE


@dataclass(frozen=True, slots=True)
class Rejection:
    """Status, code, message and further headers of one response."""

    status: int
    code: str
    message: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


TOO_MANY_CONNECTIONS = Rejection(
    503, "too_many_connections", "the server has no file descriptors left; retry in a moment", ((b"retry-after", b"1"),)
)
MALFORMED = Rejection(400, "invalid_request", "the request is not valid HTTP/1.1")


def rejection_of_head(
    version: str, address: bytes, headers: Iterable[tuple[bytes, bytes]], max_bytes: int
) -> Rejection | None:
    """Return what is wrong with the HTTP version, address and headers (names in small letters) of a request, or None.

    The address alone must be shorter than `max_bytes`: uvicorn reports one of 64 KB as malformed.
    """
    if version not in ("1.0", "1.1"):
        message = f"HTTP/1.1 is required. Given: HTTP/{version}"
        return Rejection(426, "unsupported_http_version", message, ((b"upgrade", b"HTTP/1.1"),))
    if len(address) >= max_bytes:
        return too_long(max_bytes)
    num_hosts = 0
    for name, value in headers:
        num_hosts += name == b"host"
        if name == b"content-encoding" and value.lower() not in (b"", b"identity"):  # RFC 9110, section 15.5.16
            message = f"a request must not be compressed. Given: `Content-Encoding: {value[:60].decode('latin-1')}`"
            return Rejection(415, "unsupported_encoding", message, ((b"accept-encoding", b"identity"),))
    if num_hosts > 1 or (not num_hosts and version == "1.1"):  # RFC 9112, section 3.2
        return Rejection(400, "invalid_request", f"one `Host` header is required. Given: {num_hosts}")
    return None


def too_long(max_bytes: int, *, is_trailer: bool = False) -> Rejection:
    """Return the rejection of a request whose address and headers, or trailers and chunk extensions, are too long."""
    message = f"trailers and chunk extensions must have at most {max_bytes} bytes"
    if not is_trailer:
        message = f"address and headers must have at most {max_bytes} bytes; send texts in the body"
    return Rejection(431, "headers_too_large", message)


def as_bytes(rejection: Rejection, *, for_pages: bool = False) -> bytes:
    """Return the response that ends its connection. With `for_pages`, web pages of every origin can read it.

    The origin of a request that is not parsed is unknown, and the response contains nothing secret.
    """
    body = json.dumps(NATIVE.body(rejection.status, rejection.code, rejection.message)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        *rejection.headers,
        *([(b"access-control-allow-origin", b"*")] if for_pages else []),
    ]
    status = HTTPStatus(rejection.status)
    lines = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode()), *(b"%s: %s" % header for header in headers)]
    return b"\r\n".join((*lines, b"", body))
