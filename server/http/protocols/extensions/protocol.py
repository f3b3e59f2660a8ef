"""The protocols of browser extensions as a value for the registry."""

from server.http.protocols.extensions import texts
from server.http.protocols.extensions.errors import EXTENSIONS
from server.http.protocols.protocol import Protocol

EXTENSIONS_PROTOCOL = Protocol(
    name="extensions",
    routers=(texts.router,),
    error_format=EXTENSIONS,
    paths=("/imme", "/kiss", "/hcfy"),
    key_queries=("token",),
)
