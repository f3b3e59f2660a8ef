"""Models, languages and limits of the server, and the detection of languages."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field

from bundle.loading import Bundle
from bundle.manifest import BundleConfig
from bundle.tensors import Precision
from server.http.protocols.native.fields import MAX_TAG_CHARACTERS, AnswerModel, BoundedBody, Texts
from server.http.requests.model_names import MAX_LISTED_PAIRS, listed_models
from server.http.responses.errors import error_responses
from server.http.state import RequestRecord, ServerState, request_record, server_state
from server.text.language_tags import display_name, own_name
from server.translation.quality import pair_name
from server.translation.router import Task, tasks_of

router = APIRouter(prefix="/v1", tags=["translation"])


class QualityAnswer(AnswerModel):
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


class PairAnswer(AnswerModel):
    """A source and a target language that the server translates between."""

    source: str
    target: str
    models: list[str] = Field(description="the model, or the two models of a pivot translation")
    pivot: str | None = Field(description="language between the two models")


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
    data: list[dict[str, str | int]] = []


@router.head("/models", include_in_schema=False)
@router.get("/models")
async def models(server: Annotated[ServerState, Depends(server_state)]) -> ModelsAnswer:
    """Return the models of this server and their language pairs."""
    if server.router is None:
        return ModelsAnswer(models=[], pairs=[], pairs_complete=True)
    is_complete = len(server.router.routes) <= MAX_LISTED_PAIRS
    listed = server.router.routes if is_complete else server.router.irregular_routes
    return ModelsAnswer(
        models=[_model(bundle) for bundle in server.router.bundles],
        pairs=list(map(PairAnswer.model_validate, listed)),
        pairs_complete=is_complete,
        data=listed_models(server.router),
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
        quality=[QualityAnswer.model_validate(each) for each in card.quality],
    )


NameLanguage = Annotated[
    str,
    Query(alias="in", max_length=MAX_TAG_CHARACTERS, description="language of the names; English if it has no names"),
]


class LanguageAnswer(BaseModel):
    """A language of at least one model."""

    language: str = Field(description="tag, as in source and target")
    name: str = Field(description="name in the requested language; the tag if it has no name")
    own_name: str | None = Field(description="name in the language itself")
    source: bool = Field(description="whether texts in it are translated")
    target: bool = Field(description="whether texts are translated into it")


class LanguagesAnswer(BaseModel):
    """All languages, ordered by tag."""

    languages: list[LanguageAnswer]


@router.get("/languages")
async def languages(
    server: Annotated[ServerState, Depends(server_state)], name_language: NameLanguage = "en"
) -> LanguagesAnswer:
    """Return the languages of this server with their names."""
    routes = [] if server.router is None else server.router.routes
    sources, targets = {route.source for route in routes}, {route.target for route in routes}
    return LanguagesAnswer(
        languages=[
            LanguageAnswer(
                language=tag,
                name=display_name(tag, name_language),
                own_name=own_name(tag),
                source=tag in sources,
                target=tag in targets,
            )
            for tag in sorted(sources | targets)
        ]
    )


class LimitsAnswer(BaseModel):
    """Limits and defaults of requests to this server."""

    max_text_characters: int = Field(description="maximum Unicode characters in all texts of a request")
    max_texts: int
    max_body_bytes: int
    max_beam_size: int
    default_beam_size: int
    request_timeout_seconds: float
    translation_memories: bool = Field(description="whether the server stores translation memories")


@router.get("/limits")
async def limits(server: Annotated[ServerState, Depends(server_state)]) -> LimitsAnswer:
    """Return the limits and defaults of requests."""
    return LimitsAnswer(**dict(server.settings), translation_memories=server.memories is not None)


_MAX_CANDIDATES = 5


class DetectBody(BoundedBody):
    """Texts whose languages are to be detected."""

    model_config = ConfigDict(extra="forbid")

    text: Texts


class CandidateAnswer(AnswerModel):
    """A language that a text may be in."""

    language: str = Field(description="tag, as in source")
    confidence: float = Field(description="probability, 0 to 1")


class DetectionsAnswer(BaseModel):
    """Candidates of each text, the most likely first; none for a text without letters."""

    detections: list[list[CandidateAnswer]]


@router.post("/detect", responses=error_responses(400, 413, 422, 500, 503, 504))
async def detect(
    body: DetectBody,
    server: Annotated[ServerState, Depends(server_state)],
    record: Annotated[RequestRecord, Depends(request_record)],
) -> DetectionsAnswer:
    """Return the languages that each text may be in, at most five, with their probabilities."""
    record.num_texts, record.num_characters = len(body.text), sum(map(len, body.text))
    service, _ = server.accept()
    return DetectionsAnswer(
        detections=[
            [CandidateAnswer.model_validate(each) for each in ranked[:_MAX_CANDIDATES]]
            for ranked in await service.rank(body.text)
        ]
    )
