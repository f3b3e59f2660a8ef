"""Error responses of the LibreTranslate-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat


class LibreTranslateError(BaseModel):
    """Body of an error response."""

    error: str


LIBRETRANSLATE = ErrorFormat(lambda _, message: {"error": message}, LibreTranslateError, 400, 400)
libretranslate_responses = LIBRETRANSLATE.responses
