"""Error responses of the protocols of game translators."""

from pydantic import BaseModel

from server.http.responses.error_formats import ErrorFormat
from server.interface.errors import InvalidRequest, TextTooLong


class GamesError(BaseModel):
    """Body of an error response."""

    error: str


GAMES = ErrorFormat(lambda _, __, message: {"error": message}, GamesError, {InvalidRequest: 400, TextTooLong: 413})
games_responses = GAMES.responses
