"""Metrics endpoint for Prometheus."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPEN_METRICS_TYPE

from server.http.state import ServerState, server_state

router = APIRouter(tags=["metrics"])


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request, server: Annotated[ServerState, Depends(server_state)]) -> Response:
    """Return all metrics in Prometheus' text format, or OpenMetrics with exemplars if `Accept` names it."""
    if "application/openmetrics-text" in request.headers.get("accept", ""):
        return Response(server.metrics.open_metrics(), media_type=OPEN_METRICS_TYPE)
    return Response(server.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)
