"""Every way a request can fail, and nothing of HTTP.

KvasirError
├── InvalidRequest        the request itself is wrong; the message says what would be right
│   ├── TextTooLong       more text than the limits of this server or of its model allow
│   └── UnsupportedPair   no model for these languages
├── NotFound              what the request names is not here
├── QueueFull             as many requests wait as may; try again after `retry_after_seconds`
├── Draining              the server is going down and takes nothing new
├── ClientGone            nobody waits for the answer any more
├── DeadlineExceeded      the request's time was up before its answer was ready
└── EngineFailed          a bug or a broken device: the step these rows were in failed
"""


class KvasirError(Exception):
    """Root of the tree. `code` is stable and machine-readable; the message carries the numbers and the way out."""

    code = "error"


class InvalidRequest(KvasirError):
    """The request itself is wrong; sending it again changes nothing."""

    code = "invalid_request"


class TextTooLong(InvalidRequest):
    """More text than the limits of this server or of its model allow."""

    code = "text_too_long"


class UnsupportedPair(InvalidRequest):
    """No model here translates between these two languages."""

    code = "unsupported_language_pair"


class NotFound(KvasirError):
    """What the request names is not here, or no more."""

    code = "not_found"


class QueueFull(KvasirError):
    """As many requests wait as may. `retry_after_seconds` is estimated from the queue."""

    code = "queue_full"

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Draining(KvasirError):
    """The server finishes what it has and takes nothing new."""

    code = "draining"


class ClientGone(KvasirError):
    """Whoever asked has closed the connection; what was running for them is cancelled."""

    code = "client_gone"


class DeadlineExceeded(KvasirError):
    """The request's time was up before its answer was ready."""

    code = "deadline_exceeded"


class EngineFailed(KvasirError):
    """The engine step this request was part of failed; the log has the cause."""

    code = "engine_failed"
