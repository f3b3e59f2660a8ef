"""The application for administration, on a port of its own: models and load of the server, and its metrics.

It has no description, so its answers need no models; docs/change-models.md has their fields.
"""

import asyncio
import time
from collections.abc import Coroutine, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from server.http.middleware.body import BodyLimits
from server.http.middleware.gate import Gate, Hosts, check_head, default_hosts
from server.http.monitoring import health_router, metrics_router
from server.http.responses.errors import ErrorFormats, error_response, install_error_handlers
from server.http.state import ServerState, server_state
from server.interface.engine_client import EngineClient
from server.interface.errors import Draining, EngineFailed, MissingApiKey, NotFound
from server.operations.api_keys.key_gate import KeyGate
from server.operations.models import ModelChange
from server.workers.on_demand_engine import OnDemandEngine

_STARTED = time.monotonic()
_T = TypeVar("_T")

Server = Annotated[ServerState, Depends(server_state)]
Answer = Mapping[str, object]

router = APIRouter(prefix="/admin")


class BundleToServe(BaseModel):
    """Body of a request to add or replace a model. `folder` is a bundle on the server's disk."""

    model_config = ConfigDict(extra="forbid")

    folder: str = Field(min_length=1, max_length=4096)


@router.get("/activity")
async def activity(server: Server) -> Answer:
    """Return the counts of requests and tokens by model, where those of a pivot count together, and by key."""
    return {
        "uptime_seconds": round(time.monotonic() - _STARTED, 1),
        "requests_in_flight": server.num_in_flight,
        "draining": server.draining,
        **asdict(server.activity),
    }


@router.get("/models")
async def models(server: Server) -> Answer:
    """Return the served models, in their order of preference, and their load."""
    return {"models": [_state(engine) for engine in server.engines]}


@router.post("/models")
async def put(body: BundleToServe, server: Server) -> Answer:
    """Load, warm up and verify a bundle, serve it in place of a model with its name, and unload that model.

    Answers once the old model has finished its requests and is unloaded. A bundle that cannot be served changes
    nothing; the message has the reason.
    """
    return _change(await _to_the_end(server, server.models.put(Path(body.folder))))


@router.post("/models/reload")
async def reload(server: Server) -> Answer:
    """Serve what the folders contain now, as SIGHUP does. A bundle that cannot be served leaves its model as it is."""
    return {"changes": list(map(_change, await _to_the_end(server, server.models.reload())))}


@router.delete("/models/{name}")
async def remove(name: str, server: Server) -> Answer:
    """Stop serving a model, and unload it after its last request."""
    return _change(await _to_the_end(server, server.models.remove(name)))


@router.post("/models/{name}/unload")
async def unload(name: str, server: Server) -> Answer:
    """Free the memory of an idle model until its next request; `unloaded` is false while requests use it."""
    return {"unloaded": await server.models.unload(name)}


async def _to_the_end(server: ServerState, change: Coroutine[None, None, _T]) -> _T:
    """Make a change completely, even if the client leaves. Raises `Draining` as soon as the server shuts down."""
    if server.draining or server.router is None:
        change.close()
        raise Draining("the server is starting or shutting down, and changes no models")
    running = asyncio.ensure_future(change)
    running.add_done_callback(lambda done: done.cancelled() or done.exception())  # the client may have left
    stopping = asyncio.ensure_future(server.models.stopped.wait())
    try:
        await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
    if not running.done():
        raise Draining("the server is shutting down, and finishes no change of its models")
    return running.result()


def _change(change: ModelChange) -> Answer:
    """Return a change that was made, with the seconds of its steps."""
    return {name: value for name, value in asdict(change).items() if value is not None}


def _state(engine: EngineClient) -> Answer:
    """Return a model and its present load. `memory_bytes` is an estimate, 0 while the model is not loaded."""
    config, status = engine.bundle.config, engine.status()
    on_demand = engine if isinstance(engine, OnDemandEngine) else None
    return {
        "name": config.name,
        "folder": str(engine.bundle.path),
        "source_languages": config.source_languages,
        "target_languages": config.target_languages,
        "precision": config.precision,
        "is_loaded": on_demand is None or on_demand.is_loaded,
        "memory_bytes": 0 if on_demand is None else on_demand.occupied_bytes,
        "idle_seconds": 0.0 if on_demand is None else round(on_demand.idle_seconds, 1),
        "waiting": status.waiting,
        "running": status.running,
        "rows_in_use": status.rows_in_use,
        "rows": status.rows,
    }


_MAX_BODY_BYTES = 64_000

_Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


def create_admin_app(server: ServerState, gate: KeyGate | None) -> FastAPI:
    """Return an application that administers `server`, which another application serves in the same event loop.

    With a `gate`, requests need one of its keys.
    """
    settings = server.settings
    app = FastAPI(title="Kvasir administration", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.server = server
    formats = ErrorFormats({})
    install_error_handlers(app, formats)
    app.add_exception_handler(404, _on_unknown_path)
    app.add_exception_handler(Exception, _on_defect)
    dependencies = []
    if gate is not None:

        async def check_key(credentials: _Credentials) -> None:
            if credentials is None:
                raise MissingApiKey("administration requires a key; send it as `Authorization: Bearer KEY`")
            gate.authenticate(credentials.credentials)

        dependencies.append(Depends(check_key))
    app.include_router(router, dependencies=dependencies)
    app.include_router(metrics_router, dependencies=dependencies)
    app.include_router(health_router)
    app.add_middleware(BodyLimits, max_body_bytes=_MAX_BODY_BYTES)
    # No page of another site may change models by way of an administrator's browser.
    hosts = Hosts(default_hosts(settings.admin_host), [], has_settings=False)
    app.add_middleware(Gate, checks=[check_head, hosts], formats=formats)
    return app


async def _on_unknown_path(_: Request, __: Exception) -> JSONResponse:
    """Return the response to a request without a route. The public port alone has a description of its operations."""
    return error_response(NotFound("no such path; administration is at /admin/models and /admin/activity"))


async def _on_defect(_: Request, error: Exception) -> JSONResponse:
    """Return the response to an unexpected exception, whose traceback the server logs."""
    return error_response(EngineFailed(f"internal error ({type(error).__name__}); the server log has the cause"))
