"""Error responses of the Microsoft-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidRequest, TextTooLong

_CODES = {
    "unsupported_language_pair": 400019,
    "text_too_long": 400050,
    "missing_api_key": 401000,
    "body_too_large": 400050,
}


class MicrosoftDetails(BaseModel):
    """An error; `code` has six digits, of which the first three are the status."""

    code: int
    message: str


class MicrosoftError(BaseModel):
    """Body of an error response."""

    error: MicrosoftDetails


def _body(status: int, code: str, message: str) -> dict[str, object]:
    default = 400000 if status == 422 else status * 1000
    return {"error": {"code": _CODES.get(code, default), "message": message}}


MICROSOFT = ErrorFormat(_body, MicrosoftError, {InvalidRequest: 400, TextTooLong: 400})
microsoft_responses = MICROSOFT.responses
