"""The MTranServer-compatible protocol as a value for the registry."""

from server.http.protocols.mtranserver import service, texts
from server.http.protocols.mtranserver.errors import MTRANSERVER
from server.http.protocols.protocol import Protocol

MTRANSERVER_PROTOCOL = Protocol(
    name="mtranserver",
    routers=(texts.router, service.router),
    error_format=MTRANSERVER,
    paths=("/mtranserver/", *service.PATHS),
    open_paths=service.PATHS,
    engine_free_paths=("/mtranserver/detect",),
    key_queries=("token", "api_token"),
    key_headers=("authorization", "x-api-token"),  # some clients send the token without "Bearer"
)
