"""Error responses below the application, to requests that are not parsed."""

import json
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


def as_bytes(rejection: Rejection) -> bytes:
    """Return the response that ends its connection."""
    body = json.dumps(NATIVE.body(rejection.status, rejection.code, rejection.message)).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        *rejection.headers,
    ]
    status = HTTPStatus(rejection.status)
    lines = [b"HTTP/1.1 %d %s" % (status, status.phrase.encode()), *(b"%s: %s" % header for header in headers)]
    return b"\r\n".join((*lines, b"", body))
