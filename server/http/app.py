"""The web application: routes of the selected protocols, middleware, and the lifetime of the engines."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import APIRouter, Depends, FastAPI, params
from fastapi.concurrency import run_in_threadpool
from fastapi.middleware.cors import CORSMiddleware
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi_offline import FastAPIOffline

from server.documents.input.limits import MEGABYTE
from server.http.middleware.body import BodyLimits
from server.http.middleware.gate import (
    Admission,
    Check,
    Gate,
    Hosts,
    Keys,
    ProtocolDispatch,
    Turns,
    Uploads,
    check_head,
    default_hosts,
    origin_pattern,
    unread_share,
)
from server.http.middleware.pacing import ResponsePacing
from server.http.middleware.recorder import RequestRecorder
from server.http.monitoring import health_router, metrics_router
from server.http.page import routes as page
from server.http.protocols.protocol import Protocol
from server.http.protocols.registry import PROTOCOLS
from server.http.requests.admission import key_in_body
from server.http.responses.errors import ErrorFormats, install_error_handlers
from server.http.state import ServerState
from server.interface.engine_client import EngineClient
from server.operations.event_loop import watch_event_loop
from server.operations.metrics import Metrics
from server.operations.models import open_engines
from server.operations.settings import Settings
from server.text.language_identifier import load_identifier

_DESCRIPTION = """Translation by encoder-decoder Transformers with continuous batching.

Every response has an `X-Request-ID` (the request's, if it has one) and a `Server-Timing` in milliseconds; a stream ends
with its timings instead. Every error has the body `{"error": {"code", "message"}}`, except in the other protocols,
whose operations describe theirs. Protocols below a prefix, such as `/deeplx/translate`, also answer at the path without
it, where the names of a request's fields determine its protocol."""

_EXPOSED_HEADERS = ("Content-Disposition", "Location", "Retry-After", "Server-Timing", "traceparent", "X-Request-ID")
_MAX_JSON_VALUES = 50_000  # besides texts: two for each entry of the largest glossary, and more


def create_app(
    settings: Settings, engines: Sequence[EngineClient] | None = None, observer: Metrics | None = None
) -> FastAPI:
    """Return an application that loads the models of `settings` at start-up unless `engines` are given.

    It closes its engines at shutdown, given or loaded.
    """
    server = ServerState(settings, observer or Metrics())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        opened = engines
        if opened is None:
            opened = await asyncio.to_thread(open_engines, settings, server.metrics)
        try:
            # In a thread of anyio, which imports its backend for the first one: the first request that reads a body in
            # a thread would hold the event loop for that, 0.07 s.
            await run_in_threadpool(load_identifier)
            await server.documents.remove_abandoned()
            server.open(opened)
            tasks = [
                asyncio.create_task(watch_event_loop(server.metrics.loop_lag_seconds.observe)),
                asyncio.create_task(server.models.unload_idle()),
                asyncio.create_task(server.live.watch()),
            ]
            if server.memory_jobs is not None:
                tasks.append(asyncio.create_task(server.memory_jobs.run()))
            if server.key_gate is not None:
                tasks.append(asyncio.create_task(server.key_gate.run()))
            yield
            for task in tasks:
                task.cancel()
        finally:
            try:
                await server.close()
            finally:
                added = [engine for engine in server.engines if not any(engine is other for other in opened)]
                for engine in (*opened, *added):
                    await asyncio.to_thread(engine.close)

    # FastAPI that serves the files of Swagger UI itself instead of naming a CDN.
    telemetry = {"tracing": False, "metrics": False, "logs": False}  # looked up for each request; Kvasir has its own
    app = FastAPIOffline(None, None, title="Kvasir", description=_DESCRIPTION, lifespan=lifespan, telemetry=telemetry)
    app.state.server = server
    app.state.descriptions = {}  # by the path below which a proxy serves
    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", "") != app.openapi_url]
    protocols = [PROTOCOLS[name] for name in settings.protocols]
    formats = ErrorFormats({path: protocol.error_format for protocol in protocols for path in protocol.paths})
    install_error_handlers(app, formats)
    for protocol in protocols:
        dependencies = _key_dependencies(server, protocol)
        for router in protocol.routers:
            _add_routes(app, router, dependencies)
    for router in (health_router, metrics_router, page.docs_router):
        _add_routes(app, router)
    if "native" in settings.protocols:
        _add_routes(app, page.router)  # it calls /v1
        if "live" in settings.protocols:
            _add_routes(app, page.live_router)
    upload_bytes = settings.document_options.limits.max_file_bytes + settings.max_body_bytes  # and the other fields
    upload_paths = [path for protocol in protocols for path in protocol.upload_paths]
    admission = Admission(server, protocols)
    by_rules = [protocol for name, protocol in PROTOCOLS.items() if name in settings.protocols]
    checks: list[Check] = [
        check_head,
        Hosts(settings.allowed_hosts or default_hosts(settings.host), settings.cors_origins),
        Turns(settings.max_queue_seconds),
        unread_share(server.unread),
        ProtocolDispatch(by_rules, settings.max_body_bytes, admission),
        Keys(server, protocols),
        admission,
        Uploads(server, upload_paths),
    ]
    # Middleware added last runs first.
    app.add_middleware(Gate, checks=checks, formats=formats)
    app.add_middleware(ResponsePacing, unread=server.unread, formats=formats)
    app.add_middleware(
        BodyLimits,
        max_body_bytes=settings.max_body_bytes,
        upload_bytes=dict.fromkeys(upload_paths, upload_bytes),
        memory=server.body_memory,
        max_values=_MAX_JSON_VALUES + settings.max_texts,
        raw_bytes={
            path: settings.max_memory_megabytes * MEGABYTE
            for protocol in protocols
            for path in protocol.raw_upload_paths
        },
    )
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=["*"] if "*" in settings.cors_origins else [],
            allow_origin_regex=origin_pattern(settings.cors_origins).pattern,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],  # each protocol has its own header for keys
            allow_private_network=True,
            expose_headers=_EXPOSED_HEADERS,
        )
    routers = [router for protocol in protocols for router in protocol.routers]
    endpoints = [route.path for router in routers for route in router.routes if isinstance(route, APIRoute)]
    app.add_middleware(RequestRecorder, server=server, formats=formats, endpoints=endpoints)
    return app


def _add_routes(app: FastAPI, router: APIRouter, dependencies: Sequence[params.Depends] = ()) -> None:
    """Add the routes of a router. `include_router` builds each again, at the first request, and matches paths twice."""
    if dependencies:
        app.include_router(router, dependencies=dependencies)
    else:
        app.router.routes.extend(router.routes)


def _key_dependencies(server: ServerState, protocol: Protocol) -> list[params.Depends]:
    """Return the dependencies of a protocol's routes that concern API keys."""
    if server.key_gate is None:
        return []
    if protocol.key_parameter is not None:
        return [Depends(key_in_body(protocol.key_parameter, protocol.is_open))]
    return [Depends(HTTPBearer(auto_error=False))]  # for the documentation; `Authentication` has checked the key
