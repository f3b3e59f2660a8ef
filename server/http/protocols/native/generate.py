"""`POST /v1/generate`: texts from models that do not translate, such as summaries, corrections and answers."""

from functools import partial

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from server.http.protocols.native.event_stream import EVENTS_CONTENT, EventStream
from server.http.protocols.native.fields import (
    MAX_MODEL_CHARACTERS,
    MAX_PREFIX_CHARACTERS,
    AlternativeAnswer,
    BoundedBody,
    SentenceAnswer,
    Text,
    Timeout,
    finite,
    sentence_answer,
)
from server.http.requests.api_keys import charge
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.translation_call import bypasses_cache, expected_detail_bytes, record_outcome
from server.http.responses.errors import error_responses
from server.http.responses.large_json import OBJECTS_ON_LOOP, json_off_loop
from server.http.state import request_record, server_state
from server.interface.decoding_options import DecodingOptions
from server.interface.request import FinishReason
from server.translation.text_stream import TextStream
from server.translation.types import Translation
from server.translation.whole_texts import GenerationOutcome, GenerationRequest

router = APIRouter(prefix="/v1", tags=["generation"])


class GenerateBody(BoundedBody, DecodingOptions):
    """Texts for the model to read, and how to decode its answers."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "The tower is 324 metres tall.", "prefix": "summarize: "}]},
    )

    text: Text
    model: str | None = Field(
        None, max_length=MAX_MODEL_CHARACTERS, description="name of the model; by default the first one that generates"
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
    truncate: bool = Field(False, description="drop the end of a text that is too long; otherwise it is rejected")
    stream: bool = Field(False, description="answer with server-sent events as text becomes final")
    timeout_seconds: Timeout = None


class GenerationAnswer(BaseModel):
    """Text generated from one text. Tokens include the end."""

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason = Field(
        description="stop; length if max_new_tokens ended the text; repetition if max_repetitions did"
    )
    truncated: bool | None = Field(None, description="true if the model read the beginning of the text only")
    score: float | None = Field(None, description="log-probability / length ** length_penalty, minus penalties")
    log_probability: float | None = Field(None, description="natural log-probability without the target prefix")
    alternatives: list[AlternativeAnswer] | None = Field(None, description="second and further hypotheses")
    sentence: SentenceAnswer | None = Field(None, description="details of tokens, if requested")


class GenerateAnswer(BaseModel):
    """The generated texts in the order of the texts."""

    generations: list[GenerationAnswer]
    model: str
    seed: int | None = Field(None, description="seed of the sampling")


@router.post(
    "/generate",
    response_model=GenerateAnswer,
    response_model_exclude_none=True,
    responses={200: {"content": EVENTS_CONTENT}, **error_responses(400, 404, 413, 422, 429, 500, 503, 504)},
)
async def generate(body: GenerateBody, request: Request) -> GenerateAnswer | Response:
    """Generate a text from each text with a model that does not translate. Each text is read as it is, as a whole.

    The settings of the model complete the options. With `stream` the response is a stream of events with text as soon
    as it is final.
    """
    server, record = server_state(request), request_record(request)
    texts = (body.text,) if isinstance(body.text, str) else tuple(body.text)
    asked = GenerationRequest(
        texts=texts,
        options=DecodingOptions.of(body),
        prefix=body.prefix,
        task=body.task,
        truncate=body.truncate,
        timeout_seconds=body.timeout_seconds,
        bypass_cache=bypasses_cache(request),
    )
    record.num_texts, record.num_characters = len(texts), asked.num_characters
    _, router = server.accept()
    model = router.models.find("generate", body.model)

    async def generated(stream: TextStream | None = None) -> GenerationOutcome:
        with router.in_use():
            return await model.generator.generate(asked, stream)

    record.model = model.bundle.config.name
    charge(request, asked.num_characters)
    if num_bytes := expected_detail_bytes(asked.options, asked.num_characters):
        server.expected.add(record.client, num_bytes)
        record.expected_bytes += num_bytes
    answer = partial(_answer, asked)
    if body.stream:
        return EventStream(generated, answer, record, server.metrics)
    outcome = await unless_disconnected(request, generated())
    record_outcome(record, outcome)
    if num_bytes or len(texts) > OBJECTS_ON_LOOP:
        return Response(await json_off_loop(partial(answer, outcome)), media_type="application/json")
    return answer(outcome)


def _answer(asked: GenerationRequest, done: GenerationOutcome) -> GenerateAnswer:
    generations = [
        _generation(text, asked.options, index in done.truncated) for index, text in enumerate(done.result.translations)
    ]
    return GenerateAnswer(generations=generations, model=done.model, seed=done.result.seed)


def _generation(text: Translation, options: DecodingOptions, is_truncated: bool) -> GenerationAnswer:
    def score(value: float) -> float | None:
        return finite(value) if options.return_scores else None

    others = [
        AlternativeAnswer(text=each.text, score=score(each.score), log_probability=score(each.log_probability))
        for each in text.alternatives
    ]
    return GenerationAnswer(
        text=text.text,
        source_tokens=text.source_tokens,
        target_tokens=text.target_tokens,
        finish_reason=text.finish_reason,
        truncated=is_truncated or None,
        score=score(text.score),
        log_probability=score(text.log_probability),
        alternatives=others if options.num_hypotheses > 1 else None,
        sentence=sentence_answer(text.sentences[0]) if text.sentences else None,
    )
