"""`GET /v1/models` for a server without the native protocol, which answers there with more."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from server.http.requests.model_names import model_names
from server.http.state import server_state

router = APIRouter(tags=["OpenAI-compatible"])

PATHS = ("/v1/models", "/models")


class Model(BaseModel):
    """Name of a model."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = "kvasir"


class Models(BaseModel):
    """Names that `model` may have."""

    object: str = "list"
    data: list[Model]


@router.get(PATHS[0], include_in_schema=False)
@router.get(PATHS[1], include_in_schema=False)
async def models(request: Request) -> Models:
    """Return the names that `model` may have."""
    _, model_router = server_state(request).accept()
    return Models(data=[Model(id=name) for name in model_names(model_router)])
