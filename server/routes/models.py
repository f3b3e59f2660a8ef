"""Which models a server has, and what they translate."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from export.bundle import BundleConfig, Precision
from server.state import ServerState, server_state

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


class ModelsAnswer(BaseModel):
    """All models, the one asked first in front."""

    models: list[ModelAnswer]


@router.get("/models")
async def models(server: Annotated[ServerState, Depends(server_state)]) -> ModelsAnswer:
    """The models of this server and what they translate."""
    configs = [] if server.catalogue is None else server.catalogue.configs
    return ModelsAnswer(models=[_model(config) for config in configs])


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
