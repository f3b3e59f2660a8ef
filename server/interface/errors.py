"""Errors of a request, independent of HTTP.

KvasirError
├── InvalidRequest        the request is not valid; the message has the limits
│   ├── TextTooLong       more text than the server or the model accepts
│   ├── UnsupportedPair   no model for these languages
│   ├── UnsupportedTask   no model for this task; another route may have one
│   ├── UnsupportedFormat no translation for this kind of document
│   ├── InvalidDocument   a document that is damaged, malicious, or not of the type of its name
│   ├── DocumentTooLarge  a document with too many bytes, compressed or uncompressed
│   └── DocumentTooComplex a document that takes too much work to read for its size
│       ├── DocumentCpuLimit     processor time above the limit of a document
│       └── DocumentMemoryLimit  memory above the limit of a document
├── UnknownDocument       no document with this id
├── DocumentNotReady      the document is still being translated, or its translation failed
├── NotFound              no resource with this name
├── MissingApiKey         the server requires an API key
├── InvalidApiKey         the API key is unknown, revoked or expired
├── TryLater              a limit is reached; retry after `retry_after_seconds`
│   ├── QueueFull         the queue is full
│   │   └── NoEngine      no engine runs, and none could be started
│   ├── RateLimited       the API key has made too many requests
│   └── QuotaExceeded     the API key has translated too many characters
├── StorageFull           no space is left for files of the server
├── StoreBusy             another process has locked a file of the server
├── Draining              the server stops and rejects new requests
├── ClientGone            the client closed the connection
├── DeadlineExceeded      the deadline passed before the answer was ready
└── EngineFailed          the decoder step of this request failed: a defect, or a broken device
"""

import errno
import sqlite3
from collections.abc import Mapping


class KvasirError(Exception):
    """Base class. `code` is stable and meant for programs; the message has the numbers and what to do."""

    code = "error"


class InvalidRequest(KvasirError):
    """The request is not valid; repeating it gives the same error."""

    code = "invalid_request"


class TextTooLong(InvalidRequest):
    """More text than the server or the model accepts."""

    code = "text_too_long"


class UnsupportedPair(InvalidRequest):
    """No model translates between these languages."""

    code = "unsupported_language_pair"


class UnsupportedTask(InvalidRequest):
    """No model of the server does this: it translates, generates or embeds by another route."""

    code = "unsupported_task"


class NotFound(KvasirError):
    """No resource with this name exists."""

    code = "not_found"


class UnsupportedFormat(InvalidRequest):
    """No translation for this kind of document."""

    code = "unsupported_format"


class InvalidDocument(InvalidRequest):
    """A document that is damaged, malicious, or not of the type of its name."""

    code = "invalid_document"


class DocumentTooLarge(InvalidRequest):
    """A document with too many bytes, compressed or uncompressed."""

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
    """No document with this id exists, or it has expired."""

    code = "unknown_document"


class DocumentNotReady(KvasirError):
    """The document is still being translated, or its translation failed."""

    code = "document_not_ready"


class TryLater(KvasirError):
    """A limit is reached; the same request may succeed after `retry_after_seconds`."""

    code = "try_later"

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class QueueFull(TryLater):
    """The queue is full. `retry_after_seconds` is estimated from the queue."""

    code = "queue_full"


class NoEngine(QueueFull):
    """No engine of the model runs, and none could be started. The server tries again and again."""

    code = "no_engine"


class RateLimited(TryLater):
    """The API key has made too many requests in the last minute."""

    code = "rate_limited"


class QuotaExceeded(TryLater):
    """The API key has translated as many characters as it may in a day."""

    code = "quota_exceeded"


class MissingApiKey(KvasirError):
    """The server requires an API key, and the request has none."""

    code = "missing_api_key"


class InvalidApiKey(KvasirError):
    """The API key is unknown, revoked or expired."""

    code = "invalid_api_key"


class StoreBusy(KvasirError):
    """Another process has locked a file of the server, or the file cannot be written."""

    code = "store_busy"


class StorageFull(KvasirError):
    """No space is left for files of the server."""

    code = "storage_full"


class Draining(KvasirError):
    """The server finishes accepted requests and rejects new ones."""

    code = "draining"


class ClientGone(KvasirError):
    """The client closed the connection; its requests are cancelled."""

    code = "client_gone"


class DeadlineExceeded(KvasirError):
    """The deadline passed before the answer was ready.

    `phase_seconds` are the durations of the phases until then, by their names in answers and logs.
    """

    code = "deadline_exceeded"

    def __init__(self, message: str, phase_seconds: Mapping[str, float] | None = None) -> None:
        super().__init__(message)
        self.phase_seconds = phase_seconds or {}


class EngineFailed(KvasirError):
    """The decoder step of this request failed; the log has the cause."""

    code = "engine_failed"


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def means_storage_full(error: BaseException | None) -> bool:
    """Return whether an error of a file or of a database means that it cannot grow."""
    if isinstance(error, sqlite3.Error):
        # Beyond a quota of the process, SQLite reports an error of the write.
        return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
    return isinstance(error, OSError) and error.errno in _FULL
