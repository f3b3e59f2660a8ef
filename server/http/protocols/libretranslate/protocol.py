"""The LibreTranslate-compatible protocol as a value for the registry."""

from server.http.protocols.libretranslate import documents, service, texts
from server.http.protocols.libretranslate.texts import LIBRETRANSLATE
from server.http.protocols.protocol import Protocol

LIBRETRANSLATE_PROTOCOL = Protocol(
    name="libretranslate",
    routers=(texts.router, documents.router, service.router),
    error_format=LIBRETRANSLATE,
    paths=(
        "/translate",
        "/detect",
        "/languages",
        "/health",
        "/frontend/settings",
        documents.PATH,
        "/download_file/",
        "/suggest",
        "/spec",
    ),
    upload_paths=(documents.PATH,),
    engine_free_paths=("/detect", "/suggest"),
    # A download needs the id of its document, which is a secret of its own: browsers follow the link without a key.
    open_paths=("/languages", "/health", "/frontend/settings", "/spec", "/download_file/"),
    key_parameter="api_key",
)
