"""Error responses of the Google-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidApiKey, InvalidRequest, MissingApiKey, TextTooLong

_STATUSES = {
    400: ("INVALID_ARGUMENT", "invalid"),
    401: ("UNAUTHENTICATED", "authError"),
    403: ("PERMISSION_DENIED", "forbidden"),
    404: ("NOT_FOUND", "notFound"),
    405: ("UNIMPLEMENTED", "methodNotAllowed"),
    413: ("INVALID_ARGUMENT", "uploadTooLarge"),
    429: ("RESOURCE_EXHAUSTED", "rateLimitExceeded"),
    503: ("UNAVAILABLE", "backendError"),
    504: ("DEADLINE_EXCEEDED", "backendError"),
}


class GoogleCause(BaseModel):
    """One cause of an error."""

    message: str
    domain: str
    reason: str


class GoogleDetails(BaseModel):
    """An error; `code` is the HTTP status."""

    code: int
    message: str
    errors: list[GoogleCause]
    status: str


class GoogleError(BaseModel):
    """Body of an error response."""

    error: GoogleDetails


def _body(status: int, _: str, message: str) -> dict[str, object]:
    name, reason = _STATUSES.get(status, ("INTERNAL", "internalError"))
    causes = [{"message": message, "domain": "global", "reason": reason}]
    return {"error": {"code": status, "message": message, "errors": causes, "status": name}}


GOOGLE = ErrorFormat(
    _body, GoogleError, {InvalidRequest: 400, TextTooLong: 413, MissingApiKey: 403, InvalidApiKey: 400}
)
google_responses = GOOGLE.responses
