"""Error responses of the MTranServer-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidRequest, TextTooLong


class MTranServerError(BaseModel):
    """Body of an error response."""

    error: str


MTRANSERVER = ErrorFormat(
    lambda _, __, message: {"error": message}, MTranServerError, {InvalidRequest: 400, TextTooLong: 413}
)
mtranserver_responses = MTRANSERVER.responses
