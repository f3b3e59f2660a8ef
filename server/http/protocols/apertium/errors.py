"""Error responses of the Apertium-compatible protocol."""

from http import HTTPStatus

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidRequest, TextTooLong


class ApertiumError(BaseModel):
    """Body of an error response. Some clients show `responseDetails`, others `explanation`."""

    status: str
    code: int
    message: str
    explanation: str
    responseData: None  # noqa: N815 - the protocol's names
    responseDetails: str  # noqa: N815
    responseStatus: int  # noqa: N815


def _body(status: int, _: str, message: str) -> dict[str, object]:
    phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else "Error"
    return {
        "status": "error",
        "code": status,
        "message": phrase,
        "explanation": message,
        "responseData": None,
        "responseDetails": message,
        "responseStatus": status,
    }


APERTIUM = ErrorFormat(_body, ApertiumError, {InvalidRequest: 400, TextTooLong: 413})
apertium_responses = APERTIUM.responses
