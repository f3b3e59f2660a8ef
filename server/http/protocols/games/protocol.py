"""The protocols of game translators as a value for the registry."""

from server.http.protocols.games import texts
from server.http.protocols.games.errors import GAMES
from server.http.protocols.protocol import Protocol

GAMES_PROTOCOL = Protocol(
    name="games",
    routers=(texts.router,),
    error_format=GAMES,
    paths=("/xunity/", "/sugoi/"),
    key_queries=("token",),
)
