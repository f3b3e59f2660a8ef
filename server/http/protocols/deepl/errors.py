"""Error responses of the DeepL-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.errors import ErrorFormat
from server.interface.errors import (
    DocumentNotReady,
    InvalidApiKey,
    InvalidRequest,
    MissingApiKey,
    QuotaExceeded,
    TextTooLong,
)


class DeepLError(BaseModel):
    """Body of an error response."""

    message: str


DEEPL = ErrorFormat(
    lambda _, __, message: {"message": message},
    DeepLError,
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
