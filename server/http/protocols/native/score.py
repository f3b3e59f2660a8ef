"""`POST /v1/score`: log-probabilities of given translations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from server.http.protocols.native.fields import (
    MAX_TAG_CHARACTERS,
    BoundedBody,
    SentenceAnswer,
    Timeout,
    finite,
    sentence_answer,
)
from server.http.requests.api_keys import charge
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.translation_call import expected_detail_bytes
from server.http.responses.errors import error_responses
from server.http.responses.large_json import OBJECTS_ON_LOOP, json_off_loop
from server.http.state import RequestRecord, ServerState, request_record, server_state
from server.interface.decoding_options import DetailOptions
from server.translation.types import TranslationResult
from server.translation.whole_texts import Score, ScoreRequest

router = APIRouter(prefix="/v1", tags=["translation"])


class ScoreBody(BoundedBody, DetailOptions):
    """Texts and their translations. Each is one sentence."""

    text: str | list[str] = Field(description="a text, or a list of texts")
    translation: str | list[str] = Field(description="its translation, or a list with one for each text")
    source: str | None = Field(None, max_length=MAX_TAG_CHARACTERS, description="language of the texts")
    target: str | None = Field(None, max_length=MAX_TAG_CHARACTERS, description="language of the translations")
    timeout_seconds: Timeout = None


class ScoreAnswer(BaseModel):
    """Score of one translation. Tokens include the end."""

    log_probability: float | None = Field(description="natural log-probability of the whole translation")
    score: float | None = Field(description="log-probability / target_tokens ** length_penalty")
    target_tokens: int
    sentence: SentenceAnswer | None = Field(None, description="details of tokens, if requested")


class ScoresAnswer(BaseModel):
    """The scores in the order of the texts."""

    scores: list[ScoreAnswer]
    model: str


@router.post(
    "/score",
    response_model=ScoresAnswer,
    response_model_exclude_none=True,
    responses=error_responses(400, 413, 422, 429, 500, 503, 504),
)
async def score(
    body: ScoreBody,
    request: Request,
    server: Annotated[ServerState, Depends(server_state)],
    record: Annotated[RequestRecord, Depends(request_record)],
) -> ScoresAnswer | Response:
    """Score given translations, with details of each token on request."""
    texts = (body.text,) if isinstance(body.text, str) else tuple(body.text)
    translations = (body.translation,) if isinstance(body.translation, str) else tuple(body.translation)
    record.num_texts, record.num_characters = len(texts), sum(map(len, (*texts, *translations)))
    _, catalogue = server.accept()
    charge(request, record.num_characters)
    route = catalogue.find(body.source, body.target)
    record.model = route.name
    asked = ScoreRequest(
        texts=texts,
        translations=translations,
        source=route.source,
        target=route.target,
        options=body,
        timeout_seconds=body.timeout_seconds,
    )
    if num_bytes := expected_detail_bytes(asked.options, record.num_characters):
        server.expected.add(record.client, num_bytes)
        record.expected_bytes += num_bytes
    with catalogue.in_use():
        result = await unless_disconnected(request, route.scorer.score(asked))
    record.result = TranslationResult([], result.phases, result.sentence_tokens, num_splits=0)

    def answer() -> ScoresAnswer:
        return ScoresAnswer(scores=[_answer(each) for each in result.scores], model=route.name)

    if num_bytes or len(result.scores) > OBJECTS_ON_LOOP:
        return Response(await json_off_loop(answer), media_type="application/json")
    return answer()


def _answer(score: Score) -> ScoreAnswer:
    return ScoreAnswer(
        log_probability=finite(score.log_probability),
        score=finite(score.score),
        target_tokens=score.num_tokens,
        sentence=None if score.details is None else sentence_answer(score.details),
    )
