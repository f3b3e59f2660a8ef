"""The web application: models opened and closed with it, routes, and one shape for every error."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi_offline import FastAPIOffline

from server.http.middleware.body_limit import BodyLimit
from server.http.middleware.request_recorder import RequestRecorder
from server.http.monitoring import health, metrics
from server.http.page import routes as page
from server.http.protocols.deepl import documents as deepl_documents
from server.http.protocols.deepl import glossaries as deepl_glossaries
from server.http.protocols.deepl import texts as deepl
from server.http.protocols.libretranslate import documents as libretranslate_files
from server.http.protocols.libretranslate import service as libretranslate_service
from server.http.protocols.libretranslate import texts as libretranslate
from server.http.protocols.native import documents, limits, models, score
from server.http.protocols.native import texts as native
from server.http.responses.errors import install_error_handlers
from server.http.state import ServerState
from server.interface.engine_client import EngineClient
from server.operations.metrics import Metrics
from server.operations.model_loading import open_replicas
from server.operations.settings import Settings
from server.text.language_detection import load_identifier

_DESCRIPTION = """Translation by encoder-decoder Transformers, batched continuously.

Every answer carries `X-Request-ID` (yours, if you send one) and `Server-Timing` in milliseconds; a stream ends with its
timings instead. Every error has the body `{"error": {"code", "message"}}`, except in other protocols: those have
`{"error": "…"}` (LibreTranslate-compatible) and `{"message": "…"}` (DeepL-compatible)."""


def create_app(
    settings: Settings, generators: Sequence[EngineClient] | None = None, observer: Metrics | None = None
) -> FastAPI:
    """An application that opens the models of `settings` when it starts, unless engines are handed to it.

    It closes its engines, handed or opened, when it ends.
    """
    server = ServerState(settings, observer or Metrics())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        opened = generators
        if opened is None:
            opened = await asyncio.to_thread(open_replicas, settings, server.metrics)
        try:
            await asyncio.to_thread(load_identifier)
            server.open(opened)
            yield
        finally:
            await server.close()
            for generator in opened:
                await asyncio.to_thread(generator.close)

    # Of FastAPI, with the files of its documentation page served from here instead of from a CDN.
    app = FastAPIOffline(title="Kvasir", description=_DESCRIPTION, lifespan=lifespan, redoc_url=None)
    app.state.server = server
    install_error_handlers(app)
    for part in (
        native,
        score,
        models,
        limits,
        documents,
        libretranslate,
        libretranslate_files,
        libretranslate_service,
        deepl,
        deepl_documents,
        deepl_glossaries,
        health,
        metrics,
        page,
    ):
        app.include_router(part.router)
    # The last one added is the outermost.
    uploads = (documents.PATH, deepl_documents.PATH, libretranslate_files.PATH)
    upload_bytes = settings.document_options.limits.max_file_bytes + settings.max_body_bytes  # and the other fields
    app.add_middleware(
        BodyLimit, max_body_bytes=settings.max_body_bytes, upload_bytes=dict.fromkeys(uploads, upload_bytes)
    )
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["Content-Disposition", "Location", "Retry-After", "Server-Timing", "X-Request-ID"],
        )
    app.add_middleware(RequestRecorder, server=server)
    return app
