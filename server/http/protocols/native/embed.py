"""`POST /v1/embed`: embeddings of texts from the encoder of a model."""

from functools import partial
from typing import cast

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from server.http.protocols.native.fields import (
    MAX_MODEL_CHARACTERS,
    MAX_PREFIX_CHARACTERS,
    BoundedBody,
    Text,
    Timeout,
)
from server.http.requests.admission import check_admission
from server.http.requests.api_keys import charge
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.translation_call import bypasses_cache
from server.http.responses.errors import error_responses
from server.http.responses.large_json import json_off_loop
from server.http.state import request_record, server_state
from server.interface.request import Pooling
from server.translation.types import TokenCounts, TranslationResult
from server.translation.whole_texts import EmbeddingRequest, EmbeddingResult

router = APIRouter(prefix="/v1", tags=["generation"])

_NUMBERS_ON_LOOP = 10_000  # as JSON they take about 5 ms


class EmbedBody(BoundedBody):
    """Texts to embed, and how to pool the hidden states of their tokens."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": ["Good morning.", "Guten Morgen."]}]})

    text: Text
    model: str | None = Field(
        None, max_length=MAX_MODEL_CHARACTERS, description="name of the model; by default the first one that embeds"
    )
    pooling: Pooling = Field(
        "mean", description="mean of all tokens, the first token, or the end-of-sequence token (eos)"
    )
    normalize: bool = Field(True, description="scale each embedding to the length 1")
    prefix: str = Field("", max_length=MAX_PREFIX_CHARACTERS, description="text before each of the texts")
    truncate: bool = Field(False, description="drop the end of a text that is too long; otherwise it is rejected")
    timeout_seconds: Timeout = None


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
    response_model=EmbedAnswer,
    response_model_exclude_none=True,
    dependencies=[Depends(check_admission)],
    responses=error_responses(400, 404, 413, 422, 429, 500, 503, 504),
)
async def embed(body: EmbedBody, request: Request) -> EmbedAnswer | Response:
    """Embed texts with the encoder of a model. Each text is read as it is, as a whole."""
    server, record = server_state(request), request_record(request)
    texts = (body.text,) if isinstance(body.text, str) else tuple(body.text)
    asked = EmbeddingRequest(
        texts=texts,
        pooling=body.pooling,
        normalize=body.normalize,
        prefix=body.prefix,
        truncate=body.truncate,
        timeout_seconds=body.timeout_seconds,
        bypass_cache=bypasses_cache(request),
    )
    record.num_texts, record.num_characters = len(texts), asked.num_characters
    _, served = server.accept()
    model = served.models.find("embed", body.model)
    record.model = model.bundle.config.name
    charge(request, asked.num_characters)
    with served.in_use():
        result = await unless_disconnected(request, model.embedder.embed(asked))
    record.result = TranslationResult(
        [], result.phases, TokenCounts.of([(length, 0) for length in result.num_tokens]), num_splits=0
    )
    answer = partial(_answer, result, model.bundle.config.name)
    if len(texts) * model.bundle.config.shapes.d_model > _NUMBERS_ON_LOOP:
        return Response(await json_off_loop(answer), media_type="application/json")
    return answer()


def _answer(result: EmbeddingResult, model: str) -> EmbedAnswer:
    embeddings = [
        EmbeddingAnswer(
            embedding=cast(list[float], vector.tolist()),
            source_tokens=num_tokens,
            truncated=index in result.truncated or None,
        )
        for index, (vector, num_tokens) in enumerate(zip(result.embeddings, result.num_tokens, strict=True))
    ]
    return EmbedAnswer(embeddings=embeddings, model=model)
