"""The Google-compatible protocol as a value for the registry."""

from server.http.protocols.google import cloud, pages, web
from server.http.protocols.google.errors import GOOGLE
from server.http.protocols.protocol import Protocol

GOOGLE_PROTOCOL = Protocol(
    name="google",
    routers=(cloud.router, web.router, pages.router),
    error_format=GOOGLE,
    paths=(
        cloud.PATH,
        f"{cloud.PATH}/",
        "/translate_a/",
        pages.PAGE_PATH,
        pages.MOBILE_PATH,
        pages.BATCH_PATH,
        f"{pages.PAGE_PATH}{pages.BATCH_PATH}",
    ),
    engine_free_paths=(
        f"{cloud.PATH}/detect",
        f"{cloud.PATH}/detect/",
        f"{cloud.PATH}/languages",
        f"{cloud.PATH}/languages/",
        pages.PAGE_PATH,
    ),
    key_parameter="key",
    key_headers=("x-goog-api-key",),
)
