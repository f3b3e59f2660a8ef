"""`POST /v1/generate`, `/v1/embed`, `/v1/score`: what models do besides translating, with details of each token."""

from functools import partial
from typing import cast

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from server.http.protocols.native.fields import (
    EVENTS_CONTENT,
    MAX_MODEL_CHARACTERS,
    MAX_PREFIX_CHARACTERS,
    MAX_TAG_CHARACTERS,
    AnswerModel,
    BoundedBody,
    DecodedAnswer,
    EventStream,
    Score,
    SentenceAnswer,
    Texts,
    Timeout,
)
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.translation_call import begin_call, bypasses_cache, record_outcome
from server.http.responses.errors import error_responses
from server.http.responses.large_json import OBJECTS_ON_LOOP, respond
from server.http.state import request_record, server_state
from server.interface.decoding_options import DecodingOptions, DetailOptions
from server.interface.request import Pooling
from server.translation.text_stream import TextStream
from server.translation.types import TokenCounts, TranslationResult
from server.translation.whole_texts import (
    EmbeddingRequest,
    EmbeddingResult,
    GenerationOutcome,
    GenerationRequest,
    ScoreRequest,
    ScoreResult,
)

router = APIRouter(prefix="/v1")

_NUMBERS_ON_LOOP = 10_000  # as JSON they take about 5 ms


class WholeTextBody(BoundedBody):
    """Texts that a model reads as they are, each as a whole."""

    text: Texts
    model: str | None = Field(
        None, max_length=MAX_MODEL_CHARACTERS, description="name of the model; by default the first one with this task"
    )
    truncate: bool = Field(False, description="drop the end of a text that is too long; otherwise it is rejected")
    timeout_seconds: Timeout = None


class GenerateBody(WholeTextBody, DecodingOptions):
    """Texts for the model to read, and how to decode its answers."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "The tower is 324 metres tall.", "prefix": "summarize: "}]},
    )

    task: str | None = Field(
        None,
        max_length=MAX_MODEL_CHARACTERS,
        description="a task that the model names, with its prefix and its options; see /v1/models",
    )
    prefix: str | None = Field(
        None,
        max_length=MAX_PREFIX_CHARACTERS,
        description="text before each of the texts; by default the one in the settings of the model",
    )
    stream: bool = Field(False, description="answer with server-sent events as text becomes final")


class GenerationAnswer(DecodedAnswer):
    """Text generated from one text."""

    truncated: bool | None = Field(None, description="true if the model read the beginning of the text only")
    sentence: SentenceAnswer | None = Field(None, description="details of tokens, if requested")


class GenerateAnswer(BaseModel):
    """The generated texts in the order of the texts."""

    generations: list[GenerationAnswer]
    model: str
    seed: int | None = Field(None, description="seed of the sampling")


@router.post(
    "/generate",
    tags=["generation"],
    response_model=GenerateAnswer,
    responses={200: {"content": EVENTS_CONTENT}, **error_responses(400, 404, 413, 422, 429, 500, 503, 504)},
)
async def generate(body: GenerateBody, request: Request) -> Response:
    """Generate a text from each text with a model that does not translate. Each text is read as it is, as a whole.

    The settings of the model complete the options. With `stream` the response is a stream of events with text as soon
    as it is final.
    """
    asked = GenerationRequest(
        texts=body.text,
        options=DecodingOptions.of(body),
        prefix=body.prefix,
        task=body.task,
        truncate=body.truncate,
        timeout_seconds=body.timeout_seconds,
        bypass_cache=bypasses_cache(request),
    )
    _, served = server_state(request).accept()
    model = served.models.find("generate", body.model)
    request_record(request).model = model.bundle.config.name
    has_details = begin_call(request, len(body.text), asked.num_characters, asked.options)

    async def generated(stream: TextStream | None = None) -> GenerationOutcome:
        with served.in_use():
            return await model.generator.generate(asked, stream)

    answer = partial(_generations, asked)
    if body.stream:
        return EventStream(generated, answer, request_record(request), server_state(request).metrics)
    outcome = await unless_disconnected(request, generated())
    record_outcome(request_record(request), outcome)
    return await respond(partial(answer, outcome), is_large=has_details or len(body.text) > OBJECTS_ON_LOOP)


def _generations(asked: GenerationRequest, done: GenerationOutcome) -> GenerateAnswer:
    generations = []
    for index, text in enumerate(done.result.translations):
        answer = GenerationAnswer.model_validate(text)
        answer.leave_out_unrequested(asked.options)
        answer.truncated = index in done.truncated or None
        answer.sentence = SentenceAnswer.model_validate(text.sentences[0]) if text.sentences else None
        generations.append(answer)
    return GenerateAnswer(generations=generations, model=done.model, seed=done.result.seed)


class EmbedBody(WholeTextBody):
    """Texts to embed, and how to pool the hidden states of their tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": ["Good morning.", "Guten Morgen."]}]})

    pooling: Pooling = Field(
        "mean", description="mean of all tokens, the first token, or the end-of-sequence token (eos)"
    )
    normalize: bool = Field(True, description="scale each embedding to the length 1")
    prefix: str = Field("", max_length=MAX_PREFIX_CHARACTERS, description="text before each of the texts")


class EmbeddingAnswer(BaseModel):
    """Embedding of one text."""

    embedding: list[float]
    source_tokens: int
    truncated: bool | None = Field(None, description="true if the model read the beginning of the text only")


class EmbedAnswer(BaseModel):
    """The embeddings in the order of the texts."""

    embeddings: list[EmbeddingAnswer]
    model: str


@router.post(
    "/embed",
    tags=["generation"],
    response_model=EmbedAnswer,
    responses=error_responses(400, 404, 413, 422, 429, 500, 503, 504),
)
async def embed(body: EmbedBody, request: Request) -> Response:
    """Embed texts with the encoder of a model. Each text is read as it is, as a whole."""
    asked = EmbeddingRequest(
        texts=body.text,
        pooling=body.pooling,
        normalize=body.normalize,
        prefix=body.prefix,
        truncate=body.truncate,
        timeout_seconds=body.timeout_seconds,
        bypass_cache=bypasses_cache(request),
    )
    _, served = server_state(request).accept()
    model, record = served.models.find("embed", body.model), request_record(request)
    record.model = model.bundle.config.name
    begin_call(request, len(body.text), asked.num_characters)
    with served.in_use():
        result = await unless_disconnected(request, model.embedder.embed(asked))
    tokens = TokenCounts.of([(length, 0) for length in result.num_tokens])
    record.result = TranslationResult([], result.phases, tokens, num_splits=0)
    num_numbers = len(body.text) * model.bundle.config.shapes.d_model
    return await respond(partial(_embeddings, result, record.model), is_large=num_numbers > _NUMBERS_ON_LOOP)


def _embeddings(result: EmbeddingResult, model: str) -> EmbedAnswer:
    embeddings = [
        EmbeddingAnswer(
            embedding=cast(list[float], vector.tolist()),
            source_tokens=num_tokens,
            truncated=index in result.truncated or None,
        )
        for index, (vector, num_tokens) in enumerate(zip(result.embeddings, result.num_tokens, strict=True))
    ]
    return EmbedAnswer(embeddings=embeddings, model=model)


class ScoreBody(BoundedBody, DetailOptions):
    """Texts and their translations. Each is one sentence."""

    text: Texts
    translation: Texts = Field(description="its translation, or a list with one for each text")
    source: str | None = Field(None, max_length=MAX_TAG_CHARACTERS, description="language of the texts")
    target: str | None = Field(None, max_length=MAX_TAG_CHARACTERS, description="language of the translations")
    timeout_seconds: Timeout = None


class ScoreAnswer(AnswerModel):
    """Score of one translation. Tokens include the end."""

    log_probability: Score = Field(description="natural log-probability of the whole translation")
    score: Score = Field(description="log-probability / target_tokens ** length_penalty")
    target_tokens: int = Field(validation_alias="num_tokens")
    sentence: SentenceAnswer | None = Field(
        None, validation_alias="details", description="details of tokens, if requested"
    )


class ScoresAnswer(BaseModel):
    """The scores in the order of the texts."""

    scores: list[ScoreAnswer]
    model: str


@router.post(
    "/score",
    tags=["translation"],
    response_model=ScoresAnswer,
    responses=error_responses(400, 413, 422, 429, 500, 503, 504),
)
async def score(body: ScoreBody, request: Request) -> Response:
    """Score given translations, with details of each token on request."""
    texts, translations, record = body.text, body.translation, request_record(request)
    _, served = server_state(request).accept()
    has_details = begin_call(request, len(texts), sum(map(len, (*texts, *translations))), body)
    route = served.find(body.source, body.target)
    record.model = route.name
    asked = ScoreRequest(
        texts=texts,
        translations=translations,
        source=route.source,
        target=route.target,
        options=body,
        timeout_seconds=body.timeout_seconds,
    )
    with served.in_use():
        result = await unless_disconnected(request, route.scorer.score(asked))
    record.result = TranslationResult([], result.phases, result.sentence_tokens, num_splits=0)
    is_large = has_details or len(result.scores) > OBJECTS_ON_LOOP
    return await respond(partial(_scores, result, route.name), is_large=is_large)


def _scores(result: ScoreResult, model: str) -> ScoresAnswer:
    return ScoresAnswer(scores=list(map(ScoreAnswer.model_validate, result.scores)), model=model)
