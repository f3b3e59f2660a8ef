"""`GET /v1/limits`: limits and defaults of requests."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from server.http.state import ServerState, server_state

router = APIRouter(prefix="/v1", tags=["translation"])


class LimitsAnswer(BaseModel):
    """Limits and defaults of requests to this server."""

    max_text_characters: int = Field(description="maximum Unicode characters in all texts of a request")
    max_texts: int
    max_body_bytes: int
    max_beam_size: int
    default_beam_size: int
    request_timeout_seconds: float


@router.get("/limits")
async def limits(server: Annotated[ServerState, Depends(server_state)]) -> LimitsAnswer:
    """Return the limits and defaults of requests."""
    settings = server.settings
    return LimitsAnswer(
        max_text_characters=settings.max_text_characters,
        max_texts=settings.max_texts,
        max_body_bytes=settings.max_body_bytes,
        max_beam_size=settings.max_beam_size,
        default_beam_size=settings.default_beam_size,
        request_timeout_seconds=settings.request_timeout_seconds,
    )
