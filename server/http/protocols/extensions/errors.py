"""Error responses of the protocols of browser extensions."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidRequest, TextTooLong


class ExtensionError(BaseModel):
    """Body of an error response."""

    error: str


EXTENSIONS = ErrorFormat(
    lambda _, __, message: {"error": message}, ExtensionError, {InvalidRequest: 400, TextTooLong: 413}
)
extension_responses = EXTENSIONS.responses
