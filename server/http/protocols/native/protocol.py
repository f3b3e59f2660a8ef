"""Kvasir's own protocol as a value for the registry."""

from server.http.protocols.native import (
    documents,
    embed,
    generate,
    models,
    score,
    texts,
)
from server.http.protocols.protocol import Protocol
from server.http.responses.error_formats import NATIVE

NATIVE_PROTOCOL = Protocol(
    name="native",
    routers=(
        texts.router,
        score.router,
        generate.router,
        embed.router,
        models.router,
        documents.router,
    ),
    error_format=NATIVE,
    paths=("/v1/",),
    upload_paths=(documents.PATH,),
)
