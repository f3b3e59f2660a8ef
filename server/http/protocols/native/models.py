"""`GET /v1/models`: models and language pairs of the server."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, Field

from bundle.loading import Bundle
from bundle.manifest import BundleConfig
from bundle.tensors import Precision
from server.http.requests.model_names import MAX_LISTED_PAIRS, model_names
from server.http.state import ServerState, server_state
from server.translation.quality import pair_name
from server.translation.task_models import Task, tasks_of

router = APIRouter(prefix="/v1", tags=["translation"])


class QualityAnswer(BaseModel):
    """Quality of a model on one test set, from its model card."""

    data: str
    lines: int | None = Field(description="number of lines of the test set")
    search: str | None = Field(description="search of the measurement, such as greedy or beam 4")
    bleu: float
    chrf: float | None


class ModelAnswer(BaseModel):
    """A loaded model."""

    name: str
    tasks: list[Task] = Field(description="the routes that serve the model: /v1/translate, /v1/generate, /v1/embed")
    task_names: list[str] = Field(description="values of `task` in /v1/generate, from the settings of the model")
    source_languages: list[str]
    target_languages: list[str]
    precision: Precision
    num_parameters: int
    max_source_tokens: int
    max_target_tokens: int
    demonstration: bool = Field(description="whether the model card calls this a demonstration model")
    purpose: str | None = Field(description="purpose of the model, from its model card")
    calibrated: bool = Field(description="whether `return_quality` is possible between all languages of the model")
    quality: list[QualityAnswer] = Field(description="figures of the model card for this precision")


class PairAnswer(BaseModel):
    """A source and a target language that the server translates between."""

    source: str
    target: str
    models: list[str] = Field(description="the model, or the two models of a pivot translation")
    pivot: str | None = Field(description="language between the two models")


class ModelName(BaseModel):
    """A name that `model` may have in `/v1/chat/completions`."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = "kvasir"


class ModelsAnswer(BaseModel):
    """All models, in order of preference, and the language pairs. `object` and `data` are for OpenAI's clients."""

    models: list[ModelAnswer]
    pairs: list[PairAnswer] = Field(
        description=f"all pairs; with more than {MAX_LISTED_PAIRS} only those with a pivot, because the others follow "
        "from the languages of the models"
    )
    pairs_complete: bool = Field(
        description="false if `pairs` lacks the pairs of single models: each source language with each target "
        "language; a model with several of both does not translate a language to itself",
    )
    object: str = "list"
    data: list[ModelName] = []


@router.head("/models", include_in_schema=False)
@router.get("/models")
async def models(server: Annotated[ServerState, Depends(server_state)]) -> ModelsAnswer:
    """Return the models of this server and their language pairs."""
    if server.router is None:
        return ModelsAnswer(models=[], pairs=[], pairs_complete=True)
    is_complete = len(server.router.routes) <= MAX_LISTED_PAIRS
    listed = server.router.routes if is_complete else server.router.irregular_routes
    pairs = [
        PairAnswer(source=route.source, target=route.target, models=list(route.models), pivot=route.pivot)
        for route in listed
    ]
    return ModelsAnswer(
        models=[_model(bundle) for bundle in server.router.bundles],
        pairs=pairs,
        pairs_complete=is_complete,
        data=[ModelName(id=name) for name in model_names(server.router)],
    )


def _is_calibrated(config: BundleConfig) -> bool:
    pairs = [(source, target) for source in config.source_languages for target in config.target_languages]
    names = [pair_name(*pair) for pair in pairs if pair[0] != pair[1]]
    return bool(names) and all(name in config.quality for name in names)


def _model(bundle: Bundle) -> ModelAnswer:
    config, card = bundle.config, bundle.card
    return ModelAnswer(
        name=config.name,
        tasks=tasks_of(config),
        task_names=sorted(config.generation.tasks) if config.generation is not None else [],
        source_languages=list(config.source_languages),
        target_languages=list(config.target_languages),
        precision=config.precision,
        num_parameters=config.provenance.num_parameters,
        max_source_tokens=config.shapes.max_source_tokens,
        max_target_tokens=config.shapes.max_target_tokens,
        demonstration=card.is_demonstration,
        purpose=card.purpose,
        calibrated=_is_calibrated(config),
        quality=[QualityAnswer.model_validate(each, from_attributes=True) for each in card.quality],
    )
