"""The Microsoft-compatible protocol as a value for the registry."""

from server.http.protocols.microsoft import service, texts
from server.http.protocols.microsoft.errors import MICROSOFT
from server.http.protocols.protocol import Protocol

MICROSOFT_PROTOCOL = Protocol(
    name="microsoft",
    routers=(texts.router, service.router),
    error_format=MICROSOFT,
    paths=("/microsoft/", "/translator/text/v3.0/"),
    open_paths=("/microsoft/languages", "/translator/text/v3.0/languages"),
    engine_free_paths=tuple(f"{prefix}/{name}" for prefix in service.PREFIXES for name in ("detect", "breaksentence")),
    key_queries=("Subscription-Key",),
    key_headers=("ocp-apim-subscription-key",),
)
