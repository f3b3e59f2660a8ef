"""The web application: models opened and closed with it, routes, and one shape for every error."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi_offline import FastAPIOffline

from export.bundle import load_bundle
from server.body_limit import BodyLimit
from server.generator import Generator
from server.metrics import Metrics
from server.recorder import RequestRecorder
from server.replicas import ReplicaOptions, Replicas
from server.routes import health, metrics, models, native, score
from server.routes.envelope import install_error_handlers
from server.sentence_cache import CachingGenerator
from server.settings import Settings
from server.state import ServerState

_DESCRIPTION = """Translation by encoder-decoder Transformers, batched continuously.

Every answer carries `X-Request-ID` (yours, if you send one) and `Server-Timing` in milliseconds; a stream ends with its
timings instead. Every error has the body `{"error": {"code", "message"}}`."""


def open_replicas(settings: Settings, observer: Metrics) -> list[Generator]:
    """The engines of all models of `settings`, loaded and warm, each behind its cache.

    Raises `BundleError` for a bundle that cannot be served, with the file and the reason.
    """
    options = ReplicaOptions(
        replicas=settings.num_replicas,
        threads_per_replica=settings.threads_per_replica,
        max_rows=settings.max_rows,
        max_waiting=settings.max_waiting_requests,
        max_encoder_tokens=settings.max_encoder_tokens,
        observe=observer,
    )
    return [
        CachingGenerator(Replicas.open(load_bundle(folder), options), settings.cache_sentences, observer)
        for folder in settings.model
    ]


def create_app(
    settings: Settings, generators: Sequence[Generator] | None = None, observer: Metrics | None = None
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
            server.open(opened)
            yield
        finally:
            for generator in opened:
                await asyncio.to_thread(generator.close)

    # Of FastAPI, with the files of its documentation page served from here instead of from a CDN.
    app = FastAPIOffline(title="Kvasir", description=_DESCRIPTION, lifespan=lifespan, redoc_url=None)
    app.state.server = server
    install_error_handlers(app)
    for router in (native.router, score.router, models.router, health.router, metrics.router):
        app.include_router(router)
    # The last one added is the outermost.
    app.add_middleware(BodyLimit, max_body_bytes=settings.max_body_bytes)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Content-Type", "X-Request-ID"],
            expose_headers=["Retry-After", "Server-Timing", "X-Request-ID"],
        )
    app.add_middleware(RequestRecorder, server=server)
    return app
