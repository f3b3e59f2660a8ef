"""Which models a server has, and what they translate."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from bundle.manifest import BundleConfig
from bundle.tensors import Precision
from server.http.state import ServerState, server_state

router = APIRouter(prefix="/v1", tags=["translation"])


class ModelAnswer(BaseModel):
    """A model that this server has."""

    name: str
    source_languages: list[str]
    target_languages: list[str]
    precision: Precision
    num_parameters: int
    max_source_tokens: int
    max_target_tokens: int


class PairAnswer(BaseModel):
    """Two languages between which texts can be translated."""

    source: str
    target: str
    models: list[str] = Field(description="one, or two that are asked one after the other")
    pivot: str | None = Field(description="the language between the two")


class ModelsAnswer(BaseModel):
    """All models, the one asked first in front, and all pairs."""

    models: list[ModelAnswer]
    pairs: list[PairAnswer]


@router.head("/models", include_in_schema=False)
@router.get("/models")
async def models(server: Annotated[ServerState, Depends(server_state)]) -> ModelsAnswer:
    """The models of this server and what they translate."""
    if server.router is None:
        return ModelsAnswer(models=[], pairs=[])
    pairs = [
        PairAnswer(source=route.source, target=route.target, models=list(route.models), pivot=route.pivot)
        for route in server.router.routes
    ]
    return ModelsAnswer(models=[_model(config) for config in server.router.configs], pairs=pairs)


def _model(config: BundleConfig) -> ModelAnswer:
    return ModelAnswer(
        name=config.name,
        source_languages=list(config.source_languages),
        target_languages=list(config.target_languages),
        precision=config.precision,
        num_parameters=config.provenance.num_parameters,
        max_source_tokens=config.shapes.max_source_tokens,
        max_target_tokens=config.shapes.max_target_tokens,
    )
