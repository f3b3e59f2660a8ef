"""Metrics endpoint for Prometheus."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from server.http.state import ServerState, server_state

router = APIRouter(tags=["metrics"])


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(server: Annotated[ServerState, Depends(server_state)]) -> Response:
    """Return all metrics in Prometheus' text format."""
    return Response(server.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)
