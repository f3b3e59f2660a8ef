"""How much one request may ask for, so that clients need not find out by being refused."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from server.http.state import ServerState, server_state

router = APIRouter(prefix="/v1", tags=["translation"])


class LimitsAnswer(BaseModel):
    """What this server takes, and what it does where a request does not say."""

    max_text_characters: int = Field(description="Unicode characters of all texts of a request")
    max_texts: int
    max_body_bytes: int
    max_beam_size: int
    default_beam_size: int
    request_timeout_seconds: float


@router.get("/limits")
async def limits(server: Annotated[ServerState, Depends(server_state)]) -> LimitsAnswer:
    """The limits of a request to this server."""
    settings = server.settings
    return LimitsAnswer(
        max_text_characters=settings.max_text_characters,
        max_texts=settings.max_texts,
        max_body_bytes=settings.max_body_bytes,
        max_beam_size=settings.max_beam_size,
        default_beam_size=settings.default_beam_size,
        request_timeout_seconds=settings.request_timeout_seconds,
    )
