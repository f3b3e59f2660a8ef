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
from starlette.types import ASGIApp

from server.http.direct_routes import DirectRoutes
from server.http.middleware.authentication import Authentication
from server.http.middleware.body_limit import BodyLimit
from server.http.middleware.body_memory import BodyMemory
from server.http.middleware.engine_admission import EngineAdmission
from server.http.middleware.form_charset import FormCharset
from server.http.middleware.host_check import HostCheck, default_hosts
from server.http.middleware.json_values import JsonValues
from server.http.middleware.origins import origin_pattern
from server.http.middleware.protocol_dispatch import ProtocolDispatch
from server.http.middleware.request_admission import RequestAdmission
from server.http.middleware.request_recorder import RequestRecorder
from server.http.middleware.response_pacing import ResponsePacing
from server.http.middleware.turn_admission import TurnAdmission
from server.http.middleware.upload_admission import UploadAdmission
from server.http.monitoring import health, metrics
from server.http.page import documentation
from server.http.page import routes as page
from server.http.protocols.protocol import Protocol
from server.http.protocols.registry import PROTOCOLS, error_formats
from server.http.requests.api_keys import key_in_body
from server.http.responses.descriptions import Descriptions
from server.http.responses.errors import install_error_handlers
from server.http.state import ServerState
from server.interface.engine_client import EngineClient
from server.operations.loop_lag import watch_event_loop
from server.operations.metrics import Metrics
from server.operations.model_loading import open_engines
from server.operations.settings import Settings
from server.text.language_identifier import load_identifier

_DESCRIPTION = """Translation by encoder-decoder Transformers with continuous batching.

Every response has an `X-Request-ID` (the request's, if it has one) and a `Server-Timing` in milliseconds; a stream ends
with its timings instead. Every error has the body `{"error": {"code", "message"}}`, except in the other protocols,
whose operations describe theirs. Protocols below a prefix, such as `/deeplx/translate`, also answer at the path without
it, where the names of a request's fields determine its protocol."""

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
                asyncio.create_task(watch_event_loop(server.metrics.loop_lagged)),
                asyncio.create_task(server.models.unload_idle()),
            ]
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
    app.state.descriptions = Descriptions(app)
    app.router.routes[:] = [route for route in app.router.routes if getattr(route, "path", "") != app.openapi_url]
    protocols = [PROTOCOLS[name] for name in settings.protocols]
    formats = error_formats(protocols)
    install_error_handlers(app, formats)
    for protocol in protocols:
        dependencies = _key_dependencies(server, protocol)
        for router in protocol.routers:
            _add_routes(app, router, dependencies)
    for router in (health.router, metrics.router, documentation.router):
        _add_routes(app, router)
    if "native" in settings.protocols:
        _add_routes(app, page.router)  # it calls /v1
    # Middleware added last runs first.
    app.add_middleware(DirectRoutes, application=app)
    upload_bytes = settings.document_options.limits.max_file_bytes + settings.max_body_bytes  # and the other fields
    upload_paths = [path for protocol in protocols for path in protocol.upload_paths]
    app.add_middleware(FormCharset, formats=formats)
    app.add_middleware(
        BodyLimit, max_body_bytes=settings.max_body_bytes, upload_bytes=dict.fromkeys(upload_paths, upload_bytes)
    )
    app.add_middleware(UploadAdmission, server=server, formats=formats, paths=upload_paths)
    admission = EngineAdmission(server, protocols)
    app.add_middleware(RequestAdmission, admission=admission, formats=formats)
    if server.key_gate is not None:
        app.add_middleware(Authentication, server=server, formats=formats, protocols=protocols)
    app.add_middleware(
        ProtocolDispatch,
        protocols=settings.protocols,
        max_body_bytes=settings.max_body_bytes,
        admission=admission,
        formats=formats,
    )
    app.add_middleware(JsonValues, max_values=_MAX_JSON_VALUES + settings.max_texts)
    app.add_middleware(BodyMemory, server=server, upload_paths=upload_paths)
    app.add_middleware(ResponsePacing, unread=server.unread, formats=formats)
    app.add_middleware(TurnAdmission, formats=formats)
    if settings.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=["*"] if "*" in settings.cors_origins else [],
            allow_origin_regex=origin_pattern(settings.cors_origins).pattern,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],  # each protocol has its own header for keys
            allow_private_network=True,
            expose_headers=[
                "Content-Disposition",
                "Location",
                "Retry-After",
                "Server-Timing",
                "traceparent",
                "X-Request-ID",
            ],
        )
    allowed_hosts = settings.allowed_hosts or default_hosts(settings.host)
    app.add_middleware(HostCheck, formats=formats, allowed_hosts=allowed_hosts, allowed_origins=settings.cors_origins)
    routers = [router for protocol in protocols for router in protocol.routers]
    endpoints = [route.path for router in routers for route in router.routes if isinstance(route, APIRoute)]
    app.add_middleware(RequestRecorder, server=server, formats=formats, endpoints=endpoints)
    app.middleware_stack = _from_recorder(app.build_middleware_stack())
    return app


def _from_recorder(stack: ASGIApp) -> ASGIApp:
    """Return the middleware from `RequestRecorder` on, without FastAPI's own outside of it.

    They limit bodies, as `BodyLimit` does, and turn exceptions into responses, of which the recorder leaves none.
    """
    while not isinstance(stack, RequestRecorder):
        stack = stack.app  # type: ignore[attr-defined]  # each has it
    return stack


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
