"""Error responses of the LibreTranslate-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidApiKey, InvalidRequest, MissingApiKey


class LibreTranslateError(BaseModel):
    """Body of an error response."""

    error: str


LIBRETRANSLATE = ErrorFormat(
    lambda _, __, message: {"error": message},
    LibreTranslateError,
    {InvalidRequest: 400, MissingApiKey: 400, InvalidApiKey: 403},
)
libretranslate_responses = LIBRETRANSLATE.responses
