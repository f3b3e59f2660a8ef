"""Probes for whatever keeps this server running: is it alive, and should it get requests?"""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from server.http.state import ServerState, server_state

router = APIRouter(prefix="/health", tags=["health"])


class Health(BaseModel):
    """`status` is "ok" with 200; with 503 it says what is the matter."""

    status: Literal["ok", "loading", "draining", "stuck"]


_RESPONSES: dict[int | str, dict[str, object]] = {503: {"model": Health, "description": "Not now."}}


@router.head("/live", include_in_schema=False)
@router.get("/live", responses=_RESPONSES)
async def live(response: Response, server: Annotated[ServerState, Depends(server_state)]) -> Health:
    """503 when an engine that has work, or that is gone, has been silent for too long: restart the process."""
    if _is_stuck(server):
        response.status_code = 503
        return Health(status="stuck")
    return Health(status="ok")


@router.head("/ready", include_in_schema=False)
@router.get("/ready", responses=_RESPONSES)
async def ready(response: Response, server: Annotated[ServerState, Depends(server_state)]) -> Health:
    """200 when the models are loaded and warm, no engine is stuck and the server is not going down: send requests."""
    if server.draining or any(generator.status().draining for generator in server.generators):
        response.status_code = 503
        return Health(status="draining")
    if server.catalogue is None:
        response.status_code = 503
        return Health(status="loading")
    if _is_stuck(server):
        response.status_code = 503
        return Health(status="stuck")
    return Health(status="ok")


def _is_stuck(server: ServerState) -> bool:
    limit = server.settings.heartbeat_limit_seconds
    return any(generator.status().heartbeat_age_seconds > limit for generator in server.generators)
