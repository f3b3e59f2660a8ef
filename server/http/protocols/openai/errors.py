"""Error responses of the OpenAI-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidRequest, TextTooLong

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ErrorDetails(BaseModel):
    """Message for people, kind and code for programs."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIError(BaseModel):
    """Body of an error response."""

    error: ErrorDetails


def _body(status: int, code: str, message: str) -> dict[str, object]:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


OPENAI = ErrorFormat(_body, OpenAIError, {InvalidRequest: 400, TextTooLong: 413})
openai_responses = OPENAI.responses
