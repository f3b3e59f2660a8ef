"""Administration of models: list, add, replace, remove, unload."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Depends
from pydantic import BaseModel, ConfigDict, Field

from server.http.responses.errors import error_responses
from server.http.state import ServerState, server_state
from server.interface.engine_client import EngineClient
from server.interface.errors import Draining
from server.operations.model_set import ModelChange
from server.workers.on_demand_engine import OnDemandEngine

_T = TypeVar("_T")

router = APIRouter(prefix="/admin/models", responses=error_responses(401, 422, 503))


class ModelState(BaseModel):
    """A served model and its present load. `memory_bytes` is an estimate, 0 while the model is not loaded."""

    name: str
    folder: str
    source_languages: list[str]
    target_languages: list[str]
    precision: str
    is_loaded: bool
    memory_bytes: int
    idle_seconds: float
    waiting: int
    running: int
    rows_in_use: int
    rows: int


class ModelStates(BaseModel):
    """All served models, in their order of preference."""

    models: list[ModelState]


class BundleToServe(BaseModel):
    """Body of a request to add or replace a model. `folder` is a bundle on the server's disk."""

    model_config = ConfigDict(extra="forbid")

    folder: Annotated[str, Field(min_length=1, max_length=4096)]


class ChangeAnswer(BaseModel):
    """A change that was made. `seconds` are the durations of its steps."""

    model: str
    outcome: Literal["added", "replaced", "unchanged", "removed", "failed"]
    seconds: dict[str, float]
    error: str | None = None


class ReloadAnswer(BaseModel):
    """The changes of a comparison with the folders."""

    changes: list[ChangeAnswer]


class UnloadAnswer(BaseModel):
    """`unloaded` is false while requests use the model."""

    unloaded: bool


@router.get("")
async def models(server: Annotated[ServerState, Depends(server_state)]) -> ModelStates:
    """Return the served models and their load."""
    return ModelStates(models=[_state(engine) for engine in server.engines])


@router.post("", response_model_exclude_none=True)
async def put(body: BundleToServe, server: Annotated[ServerState, Depends(server_state)]) -> ChangeAnswer:
    """Load, warm up and verify a bundle, serve it in place of a model with its name, and unload that model.

    Answers once the old model has finished its requests and is unloaded. A bundle that cannot be served changes
    nothing; the message has the reason.
    """
    return _answer(await _to_the_end(server, server.models.put(Path(body.folder))))


@router.post("/reload", response_model_exclude_none=True)
async def reload(server: Annotated[ServerState, Depends(server_state)]) -> ReloadAnswer:
    """Serve what the folders contain now, as SIGHUP does. A bundle that cannot be served leaves its model as it is."""
    return ReloadAnswer(changes=[_answer(change) for change in await _to_the_end(server, server.models.reload())])


@router.delete("/{name}", responses=error_responses(404), response_model_exclude_none=True)
async def remove(name: str, server: Annotated[ServerState, Depends(server_state)]) -> ChangeAnswer:
    """Stop serving a model, and unload it after its last request."""
    return _answer(await _to_the_end(server, server.models.remove(name)))


@router.post("/{name}/unload", responses=error_responses(404))
async def unload(name: str, server: Annotated[ServerState, Depends(server_state)]) -> UnloadAnswer:
    """Free the memory of an idle model until its next request."""
    return UnloadAnswer(unloaded=await server.models.unload(name))


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


def _answer(change: ModelChange) -> ChangeAnswer:
    return ChangeAnswer(model=change.model, outcome=change.outcome, seconds=dict(change.seconds), error=change.error)


def _state(engine: EngineClient) -> ModelState:
    config, status = engine.bundle.config, engine.status()
    on_demand = engine if isinstance(engine, OnDemandEngine) else None
    return ModelState(
        name=config.name,
        folder=str(engine.bundle.path),
        source_languages=list(config.source_languages),
        target_languages=list(config.target_languages),
        precision=config.precision,
        is_loaded=on_demand is None or on_demand.is_loaded,
        memory_bytes=0 if on_demand is None else on_demand.occupied_bytes,
        idle_seconds=0.0 if on_demand is None else round(on_demand.idle_seconds, 1),
        waiting=status.waiting,
        running=status.running,
        rows_in_use=status.rows_in_use,
        rows=status.rows,
    )
