"""The Apertium-compatible protocol as a value for the registry."""

from server.http.protocols.apertium import texts
from server.http.protocols.apertium.errors import APERTIUM
from server.http.protocols.protocol import Protocol

APERTIUM_PROTOCOL = Protocol(
    name="apertium",
    routers=(texts.router,),
    error_format=APERTIUM,
    paths=("/apertium/", *texts.SHARED_PATHS),
    open_paths=("/listPairs", "/list", "/apertium/listPairs", "/apertium/list"),
    engine_free_paths=(*texts.SHARED_PATHS, *(f"/apertium{path}" for path in texts.SHARED_PATHS)),
    key_parameter="key",
)
