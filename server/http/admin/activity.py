"""Requests and tokens by model and by key, for dashboards and accounting."""

import time
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from server.http.responses.errors import error_responses
from server.http.state import ServerState, server_state

router = APIRouter(prefix="/admin", responses=error_responses(401))

_STARTED = time.monotonic()


class CountsAnswer(BaseModel):
    """Counts since the start. `name` is that of the model, or of the key."""

    name: str
    requests: int
    rejected: int
    characters: int
    source_tokens: int
    target_tokens: int


class ActivityAnswer(BaseModel):
    """Counts by model, where models of a pivot count together, and by the id of the key."""

    uptime_seconds: float
    requests_in_flight: int
    draining: bool
    models: dict[str, CountsAnswer]
    keys: dict[str, CountsAnswer]


@router.get("/activity")
async def activity(server: Annotated[ServerState, Depends(server_state)]) -> ActivityAnswer:
    """Return the counts of requests and tokens by model and by key."""
    counts = server.activity
    return ActivityAnswer(
        uptime_seconds=round(time.monotonic() - _STARTED, 1),
        requests_in_flight=server.num_in_flight,
        draining=server.draining,
        models={name: CountsAnswer(**asdict(each)) for name, each in counts.models.items()},
        keys={name: CountsAnswer(**asdict(each)) for name, each in counts.keys.items()},
    )
