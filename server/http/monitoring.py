"""Liveness and readiness probes, and metrics for Prometheus."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPEN_METRICS_TYPE
from pydantic import BaseModel

from server.http.state import ServerState, server_state

health_router = APIRouter(prefix="/health", tags=["health"])


Status = Literal["ok", "loading", "draining", "stuck", "no_engine"]


class Health(BaseModel):
    """`status` is "ok" with 200, and the reason with 503."""

    status: Status


_RESPONSES: dict[int | str, dict[str, object]] = {503: {"model": Health, "description": "Not live or not ready."}}


@health_router.head("/live", include_in_schema=False)
@health_router.get("/live", responses=_RESPONSES)
async def live(response: Response, server: Annotated[ServerState, Depends(server_state)]) -> Health:
    """Return 503 if an engine with work, or a dead one, has sent no heartbeat for too long; restart the process."""
    return _health(response, "stuck" if _is_stuck(server) else "ok")


@health_router.head("/ready", include_in_schema=False)
@health_router.get("/ready", responses=_RESPONSES)
async def ready(response: Response, server: Annotated[ServerState, Depends(server_state)]) -> Health:
    """Return 200 if the models are loaded and warm, every model has an engine and the server is not shutting down."""
    if server.draining or any(engine.status().draining for engine in server.engines):
        return _health(response, "draining")
    if server.router is None:
        return _health(response, "loading")
    if _is_stuck(server):
        return _health(response, "stuck")
    return _health(response, "ok" if all(engine.status().has_engine for engine in server.engines) else "no_engine")


def _health(response: Response, status: Status) -> Health:
    response.status_code = 200 if status == "ok" else 503
    return Health(status=status)


def _is_stuck(server: ServerState) -> bool:
    limit = server.settings.heartbeat_limit_seconds
    return any(engine.status().heartbeat_age_seconds > limit for engine in server.engines)


metrics_router = APIRouter(tags=["metrics"])


@metrics_router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request, server: Annotated[ServerState, Depends(server_state)]) -> Response:
    """Return all metrics in Prometheus' text format, or OpenMetrics with exemplars if `Accept` names it."""
    if "application/openmetrics-text" in request.headers.get("accept", ""):
        return Response(server.metrics.open_metrics(), media_type=OPEN_METRICS_TYPE)
    return Response(server.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)
