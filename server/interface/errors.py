"""Every way a request can fail, and nothing of HTTP.

KvasirError
├── InvalidRequest        the request itself is wrong; the message says what would be right
│   ├── TextTooLong       more text than the limits of this server or of its model allow
│   ├── UnsupportedPair   no model for these languages
│   ├── UnsupportedFormat no such kind of document is translated here
│   ├── InvalidDocument   a document that is damaged, or not what its name says, or built to do harm
│   ├── DocumentTooLarge  a document with more bytes than the limits allow, packed or unpacked
│   └── DocumentTooComplex a document that takes too much work to read for its size
│       ├── DocumentCpuLimit     it took more processor time than a document may take
│       └── DocumentMemoryLimit  it took more memory than a document may take
├── UnknownDocument       there is no such document, or not any more
├── DocumentNotReady      the document is not translated yet, or could not be
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


class UnsupportedFormat(InvalidRequest):
    """No such kind of document is translated here."""

    code = "unsupported_format"


class InvalidDocument(InvalidRequest):
    """A document that is damaged, or not what its name says, or built to do harm."""

    code = "invalid_document"


class DocumentTooLarge(InvalidRequest):
    """A document with more bytes than the limits allow, packed or unpacked."""

    code = "document_too_large"


class DocumentTooComplex(InvalidRequest):
    """A document that takes too much work to read for its size."""

    code = "document_too_complex"


class DocumentCpuLimit(DocumentTooComplex):
    """Reading or writing a document took more processor time than a document may take."""

    code = "document_cpu_limit"


class DocumentMemoryLimit(DocumentTooComplex):
    """Reading or writing a document took more memory than a document may take."""

    code = "document_memory_limit"


class UnknownDocument(KvasirError):
    """There is no such document: never, or not any more."""

    code = "unknown_document"


class DocumentNotReady(KvasirError):
    """The document is not translated yet, or could not be."""

    code = "document_not_ready"


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
