"""MTranServer-compatible routes that describe the server."""

from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

router = APIRouter(tags=["MTranServer-compatible"])

PATHS = ("/version", "/__heartbeat__", "/__lbheartbeat__")


class VersionAnswer(BaseModel):
    """Version of this server."""

    version: str


@router.get("/version")
async def server_version() -> VersionAnswer:
    """Return the version of this server."""
    try:
        return VersionAnswer(version=version("kvasir-server"))
    except PackageNotFoundError:  # run from a checkout that is not installed
        return VersionAnswer(version="0")


@router.get("/__heartbeat__", response_class=PlainTextResponse)
@router.get("/__lbheartbeat__", response_class=PlainTextResponse)
async def heartbeat() -> PlainTextResponse:
    """Return that the server is up; /health/ready is more precise."""
    return PlainTextResponse("Ready")
