"""Error responses of the Microsoft-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidRequest, QuotaExceeded, TextTooLong

_CODES = {
    "unsupported_language_pair": 400019,
    "text_too_long": 400050,
    "missing_api_key": 401000,
    "quota_exceeded": 403001,
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


# The SDK waits as long as the `Retry-After` of a 429, which would be until the next day.
MICROSOFT = ErrorFormat(_body, MicrosoftError, {InvalidRequest: 400, TextTooLong: 400, QuotaExceeded: 403})
microsoft_responses = MICROSOFT.responses
