"""Exceptions of the client.

KvasirError
├── ConnectionFailed
├── TimedOut
├── ResponseError
│   └── Overloaded
└── DocumentFailed
"""


class KvasirError(Exception):
    """A call to a Kvasir server failed."""


class ConnectionFailed(KvasirError):
    """The server was not reached, or it closed the connection before the response was complete."""


class TimedOut(KvasirError):
    """The server did not respond within the client's `timeout`."""


class ResponseError(KvasirError):
    """The server responded with an error.

    `status` is the HTTP status, `code` the stable name of the error for programs (empty if the response has none).
    """

    def __init__(self, status: int, code: str, message: str, request_id: str | None = None) -> None:
        super().__init__(f"{status} {code}: {message}" if code else f"{status}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id


class Overloaded(ResponseError):
    """The server rejected the request (429 or 503). It may succeed after `retry_after_seconds`."""

    retry_after_seconds: float | None = None


class DocumentFailed(KvasirError):
    """The server could not translate a document. `code` is the stable name of the error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
