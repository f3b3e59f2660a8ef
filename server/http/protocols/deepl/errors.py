"""Error responses of the DeepL-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat


class DeepLError(BaseModel):
    """Body of an error response."""

    message: str


DEEPL = ErrorFormat(lambda _, message: {"message": message}, DeepLError, 400, 413, not_ready_status=503)
deepl_responses = DEEPL.responses
