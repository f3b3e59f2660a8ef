"""`POST /v1/translate`: translation of texts with all decoding options."""

import asyncio
import math
import time
from functools import partial

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from server.http.protocols.native.details import TranslationDetails, translation_details
from server.http.protocols.native.event_stream import EVENTS_CONTENT, EventStream
from server.http.protocols.native.fields import (
    MAX_TAG_CHARACTERS,
    AlternativeAnswer,
    BoundedBody,
    SentenceAnswer,
    Text,
    Timeout,
    finite,
    sentence_answer,
)
from server.http.requests.memories import named_memory
from server.http.requests.translation_call import accept, run_translation
from server.http.responses.errors import error_responses
from server.http.responses.large_json import OBJECTS_ON_LOOP, json_off_loop, json_response
from server.http.state import request_record, server_state
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest
from server.interface.request import FinishReason
from server.text.formality import Formality
from server.text.glossary import Glossary
from server.text.language_detection import Detection
from server.translation.execution import GLOSSARIES, Deadline, ThreadRunner
from server.translation.glossaries import memory_of
from server.translation.service import TranslationOutcome
from server.translation.types import TextContext, TextFormat, Translation, TranslationRequest

router = APIRouter(prefix="/v1", tags=["translation"])


class TranslateBody(BoundedBody, DecodingOptions):
    """Texts, their languages, and how to translate them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning. How are you today?", "source": "en", "target": "de"}]},
    )

    text: Text = Field(description="a text, or a list of texts, with any number of sentences and lines")
    source: str | None = Field(
        None,
        max_length=MAX_TAG_CHARACTERS,
        description="language of the texts, or auto to detect each; optional if only one is possible",
    )
    target: str | None = Field(
        None,
        max_length=MAX_TAG_CHARACTERS,
        description="language to translate into; optional if only one is possible",
    )
    glossary: dict[str, str | list[str]] | None = Field(
        None,
        description="terms of the source language and their translations; a list has alternatives, of which the "
        "translation has one",
    )
    glossary_id: str | None = Field(None, max_length=64, description="id of a stored glossary; see /v2/glossaries")
    memory_id: str | None = Field(
        None,
        max_length=64,
        description="id of a translation memory; by default those that the API key uses by default; see docs/memory.md",
    )
    memory_threshold: int | None = Field(
        None, ge=0, le=100, description="score from which on a similar sentence of the memory is used; by default 75"
    )
    formal: bool | None = Field(
        None,
        description="true for formal address, false for informal address, in languages with rules for both; sentences "
        "without an address do not change",
    )
    stream: bool = Field(False, description="answer with server-sent events as text becomes final")
    timeout_seconds: Timeout = None
    format: TextFormat = Field("text", description="html and xml keep their tags")
    context: TextContext | None = Field(
        None,
        description="lines: the texts are lines of one text, such as captions; those that one sentence runs over are "
        "translated together, and the translation is divided into as many again. By default as the server or the key "
        "says, else none",
    )


class DetectedLanguage(BaseModel):
    """The most likely of the expected languages."""

    language: str
    confidence: float = Field(ge=0, le=1, description="probability; low for short texts")


class TranslationAnswer(BaseModel):
    """Translation of one text. Tokens include the end of every sentence."""

    text: str
    detected_language: DetectedLanguage | None = Field(None, description="if source is auto and the text has letters")
    translated: bool | None = Field(
        None,
        description="if source is auto: false if `text` is the unchanged source, because it is in the target language "
        "already or has no letters",
    )
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason = Field(
        description="stop; length if max_new_tokens ended a sentence; repetition if max_repetitions did"
    )
    score: float | None = Field(
        None,
        description="log-probability / length ** length_penalty, minus penalties; the mean over sentences, weighted "
        "by target tokens",
    )
    log_probability: float | None = Field(None, description="natural log-probability without the target prefix")
    quality: float | None = Field(
        None,
        ge=0,
        le=1,
        description="probability that the translation is good, if `return_quality` or `min_quality` is set: the mean "
        "over its sentences, weighted by their characters",
    )
    alternatives: list[AlternativeAnswer] | None = Field(
        None, description="second and further hypotheses; number i joins hypothesis i of every sentence"
    )
    sentences: list[SentenceAnswer] | None = Field(None, description="details of tokens, if requested")
    details: TranslationDetails | None = Field(
        None,
        description="what was protected, kept, repaired, or is incomplete or of low quality, and numbers that differ; "
        "only where there is something to report",
    )


class TranslateAnswer(BaseModel):
    """The translations in the order of the texts."""

    translations: list[TranslationAnswer]
    model: str | None = Field(None, description="name of the model, or of two models joined by +")
    pivot: str | None = Field(None, description="language between the two models")
    seed: int | None = Field(None, description="seed of the sampling")


@router.post(
    "/translate",
    response_model=TranslateAnswer,
    responses={200: {"content": EVENTS_CONTENT}, **error_responses(400, 404, 413, 422, 429, 500, 503, 504)},
)
async def translate(
    body: TranslateBody,
    request: Request,
) -> Response:
    """Translate texts. The order of the texts, their line breaks and blank lines are preserved.

    With `stream` the response is a stream of events with text as soon as it is final.
    """
    texts = (body.text,) if isinstance(body.text, str) else tuple(body.text)
    glossary, glossary_source = await _glossary(body, request)
    asked = TranslationRequest(
        texts=texts,
        source="",
        target="",
        options=DecodingOptions.of(body),
        glossary=glossary,
        glossary_source=glossary_source,
        formality=None if body.formal is None else Formality.FORMAL if body.formal else Formality.INFORMAL,
        timeout_seconds=body.timeout_seconds,
        format=body.format,
        memory=await named_memory(request, body.memory_id, body.memory_threshold),
        joins_lines=None if body.context is None else body.context == "lines",
    )
    if body.stream:
        interpreter, asked = accept(request, asked)
        translate_to = partial(interpreter.translate, asked, body.source, body.target)
        record, metrics = request_record(request), server_state(request).metrics
        return EventStream(translate_to, partial(_answer, asked), record, metrics)
    outcome = await run_translation(request, asked, body.source, body.target)
    if _num_objects(asked, outcome) > OBJECTS_ON_LOOP:
        return Response(await json_off_loop(partial(_answer, asked, outcome)), media_type="application/json")
    return json_response(_answer(asked, outcome))


async def _glossary(body: TranslateBody, request: Request) -> tuple[Glossary | None, str | None]:
    """Return the glossary of a request, and the language of its terms if it is a stored one."""
    server, record = server_state(request), request_record(request)
    if body.glossary is not None and body.glossary_id is not None:
        raise InvalidRequest("`glossary` cannot be combined with `glossary_id`")
    if body.glossary is not None:
        num_bytes = memory_of(body.glossary)
        server.glossary_memory.add(record.client, num_bytes)
        record.glossary_bytes = num_bytes
        now = time.monotonic()
        allowed = min(body.timeout_seconds or math.inf, server.settings.request_timeout_seconds)
        deadline = Deadline.of(now + allowed, now, time.monotonic)
        return await ThreadRunner(GLOSSARIES, deadline)(Glossary, body.glossary), None
    if body.glossary_id is not None:
        store = server.stored_glossaries()
        info = await asyncio.to_thread(store.info, body.glossary_id)
        return await asyncio.to_thread(store.glossary, body.glossary_id), info.source
    return None, None


def _num_objects(asked: TranslationRequest, done: TranslationOutcome) -> int:
    """Return approximately how many models the answer has; with details, some for each token."""
    result = done.result
    num_tokens = result.sentence_tokens.num_target_tokens if asked.options.wants_details else 0
    num_alternatives = max(asked.options.num_hypotheses, 1) * len(result.translations)
    counts = (result.kept_spans, result.kept_sentences, result.outcomes)
    num_sentences = result.sentence_tokens.num_sentences if asked.options.return_quality else 0
    num_named = (
        sum(len(each.memory) for each in result.translations)
        + sum(sum(each.values()) for each in counts)
        + result.num_low_quality
        + num_sentences
    )
    return num_alternatives + num_named + num_tokens


def _answer(asked: TranslationRequest, done: TranslationOutcome) -> TranslateAnswer:
    detected = done.detected or (None,) * len(asked.texts)
    translations = [
        _translation(translation, asked, language, index not in done.unchanged if done.detected else None)
        for index, (translation, language) in enumerate(zip(done.result.translations, detected, strict=True))
    ]
    return TranslateAnswer(translations=translations, model=done.model, pivot=done.pivot, seed=done.result.seed)


def _translation(
    translation: Translation, asked: TranslationRequest, detected: Detection | None, is_translated: bool | None
) -> TranslationAnswer:
    others = [
        AlternativeAnswer(
            text=other.text,
            score=_score(other.score, asked),
            log_probability=_score(other.log_probability, asked),
        )
        for other in translation.alternatives
    ]
    return TranslationAnswer(
        text=translation.text,
        detected_language=None
        if detected is None
        else DetectedLanguage(language=detected.language, confidence=round(detected.confidence, 4)),
        translated=is_translated,
        source_tokens=translation.source_tokens,
        target_tokens=translation.target_tokens,
        finish_reason=translation.finish_reason,
        score=_score(translation.score, asked),
        log_probability=_score(translation.log_probability, asked),
        quality=translation.quality,
        alternatives=others if asked.options.num_hypotheses > 1 else None,
        sentences=[sentence_answer(details) for details in translation.sentences] or None,
        details=translation_details(translation),
    )


def _score(score: float, asked: TranslationRequest) -> float | None:
    return finite(score) if asked.options.return_scores else None
