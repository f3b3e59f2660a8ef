"""Error responses of the DeepLX-compatible protocol."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidRequest, TextTooLong, UnsupportedPair


class DeepLXError(BaseModel):
    """Body of an error response. `code` is the status; `data` is empty, for clients that read it in any answer."""

    code: int
    message: str
    data: str = ""


DEEPLX = ErrorFormat(
    lambda status, _, message: {"code": status, "message": message, "data": ""},
    DeepLXError,
    {InvalidRequest: 400, UnsupportedPair: 406, TextTooLong: 413},
)
deeplx_responses = DEEPLX.responses
