"""The DeepLX-compatible protocol as a value for the registry."""

from server.http.protocols.deeplx import texts
from server.http.protocols.deeplx.errors import DEEPLX
from server.http.protocols.protocol import Protocol

DEEPLX_PROTOCOL = Protocol(
    name="deeplx",
    routers=(texts.router,),
    error_format=DEEPLX,
    paths=("/deeplx", "/deeplx/"),
    key_queries=("token",),
)
