"""Error responses of the DeepL-compatible protocol."""

from server.http.responses.errors import ErrorFormat
from server.interface.errors import (
    DocumentNotReady,
    InvalidApiKey,
    InvalidRequest,
    MissingApiKey,
    QuotaExceeded,
    TextTooLong,
)

DEEPL = ErrorFormat(
    "DeepLError",
    lambda _, __, message: {"message": message},
    {
        InvalidRequest: 400,
        TextTooLong: 413,
        DocumentNotReady: 503,
        MissingApiKey: 403,
        InvalidApiKey: 403,
        QuotaExceeded: 456,
    },
)
deepl_responses = DEEPL.responses
