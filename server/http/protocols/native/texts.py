"""Kvasir's own protocol. `POST /v1/translate`: translation of texts with all decoding options."""

import asyncio
import math
import time
from functools import partial
from operator import attrgetter
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import AliasPath, BaseModel, ConfigDict, Field

from bundle.manifest import Repair
from server.http.protocols.native import documents, generation, models
from server.http.protocols.native.fields import (
    EVENTS_CONTENT,
    MAX_TAG_CHARACTERS,
    AnswerModel,
    BoundedBody,
    DecodedAnswer,
    EventStream,
    IfAny,
    SentenceAnswer,
    Texts,
    Timeout,
)
from server.http.protocols.protocol import Protocol
from server.http.requests.memories import named_memory
from server.http.requests.translation_call import accept, run_translation
from server.http.responses.errors import NATIVE, error_responses
from server.http.responses.large_json import OBJECTS_ON_LOOP, respond
from server.http.state import request_record, server_state
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest
from server.text.formality import Formality
from server.text.glossary import Glossary
from server.text.language_detection import Detection
from server.text.protection.masked_sentence import Strategy
from server.text.spans import SpanKind
from server.translation.execution import GLOSSARIES, Deadline, ThreadRunner
from server.translation.glossaries import memory_of
from server.translation.service import TranslationOutcome
from server.translation.types import KeepReason, MemoryUse, TextContext, TextFormat, Translation, TranslationRequest

router = APIRouter(prefix="/v1", tags=["translation"])


class TranslateBody(BoundedBody, DecodingOptions):
    """Texts, their languages, and how to translate them."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": "Good morning. How are you today?", "source": "en", "target": "de"}]},
    )

    text: Texts = Field(description="a text, or a list of texts, with any number of sentences and lines")
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


class ProtectedSpanAnswer(AnswerModel):
    """A span of a text that had to survive its translation."""

    text: str
    kind: SpanKind
    means: Strategy = Field(
        description="as_is: the model read it and wrote it; mask: the model read a mask; placed: it was put next to "
        "its words; apart: the sentence was translated around it"
    )


class KeptSentenceAnswer(AnswerModel):
    """A text, or a sentence of low quality, that was not translated: the translation has its source."""

    text: str
    reason: KeepReason


class RepairedSentenceAnswer(AnswerModel):
    """A sentence that was decoded again, and what its first translation lacked."""

    text: str
    repair: Repair


class NumbersAnswer(AnswerModel):
    """Numbers that differ between a text and its translation, as each writes them."""

    missing: Annotated[list[str] | None, IfAny] = Field(
        None, validation_alias="missing_numbers", description="numbers of the source without a counterpart"
    )
    invented: Annotated[list[str] | None, IfAny] = Field(
        None,
        validation_alias="invented_numbers",
        description="numbers of the translation that the source does not have",
    )


class SentenceQualityAnswer(AnswerModel):
    """A sentence, its translation, and the quality."""

    text: str
    translation: str
    quality: float = Field(ge=0, le=1)


class SentenceMemoryAnswer(AnswerModel):
    """What the translation memory had for a sentence."""

    text: str
    translation: str
    memory: MemoryUse = Field(
        validation_alias="use",
        description="exact: its translation, which is the answer; fuzzy: one of a similar sentence",
    )
    score: int | None = Field(
        None,
        validation_alias=AliasPath("match", "score"),
        description="100 for exact; else 100 minus the edit distance in percent of the words",
    )
    segment_id: str | None = Field(None, validation_alias=AliasPath("match", "segment"))
    source_text: str | None = Field(
        None, validation_alias=AliasPath("similar", "source"), description="of the similar sentence"
    )
    target_text: str | None = Field(
        None, validation_alias=AliasPath("similar", "target"), description="of the similar sentence"
    )


class TranslationDetails(AnswerModel):
    """How a translation came about."""

    protected: Annotated[list[ProtectedSpanAnswer] | None, IfAny] = Field(
        None, description="addresses, placeholders, identifiers and symbols, in their order"
    )
    kept: Annotated[list[KeptSentenceAnswer] | None, IfAny] = Field(
        None, description="what was not translated; `if_already_target` and `on_low_quality` translate it"
    )
    formality_mismatches: Annotated[list[str] | None, IfAny] = Field(
        None, description="translated sentences that do not have the form of address that `formal` asks for"
    )
    repaired: Annotated[list[RepairedSentenceAnswer] | None, IfAny] = Field(
        None, description="sentences whose first translation lacked something; they were decoded again"
    )
    incomplete: Annotated[list[str] | None, IfAny] = Field(
        None, description="sentences whose translation lacks something"
    )
    numbers: NumbersAnswer | None = Field(None, description="numbers that were lost or invented; none is corrected")
    quality: Annotated[list[SentenceQualityAnswer] | None, IfAny] = Field(
        None,
        validation_alias="sentence_quality",
        description="sentences that were translated, if `return_quality` is set",
    )
    low_quality: Annotated[list[SentenceQualityAnswer] | None, IfAny] = Field(
        None, description="sentences with a quality below `min_quality`"
    )
    memory: Annotated[list[SentenceMemoryAnswer] | None, IfAny] = Field(
        None, description="all sentences, if a memory was used"
    )


class TranslationAnswer(DecodedAnswer):
    """Translation of one text."""

    detected_language: DetectedLanguage | None = Field(None, description="if source is auto and the text has letters")
    translated: bool | None = Field(
        None,
        description="if source is auto: false if `text` is the unchanged source, because it is in the target language "
        "already or has no letters",
    )
    quality: float | None = Field(
        None,
        ge=0,
        le=1,
        description="probability that the translation is good, if `return_quality` or `min_quality` is set: the mean "
        "over its sentences, weighted by their characters",
    )
    sentences: Annotated[list[SentenceAnswer] | None, IfAny] = Field(
        None, description="details of tokens, if requested"
    )
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
async def translate(body: TranslateBody, request: Request) -> Response:
    """Translate texts. The order of the texts, their line breaks and blank lines are preserved.

    With `stream` the response is a stream of events with text as soon as it is final.
    """
    glossary, glossary_source = await _glossary(body, request)
    asked = TranslationRequest(
        texts=body.text,
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
    answer = partial(_answer, asked)
    if body.stream:
        service, accepted = accept(request, asked)
        translate_to = partial(service.translate, accepted, body.source, body.target)
        return EventStream(translate_to, answer, request_record(request), server_state(request).metrics)
    outcome = await run_translation(request, asked, body.source, body.target)
    return await respond(partial(answer, outcome), is_large=_num_objects(asked, outcome) > OBJECTS_ON_LOOP)


async def _glossary(body: TranslateBody, request: Request) -> tuple[Glossary | None, str | None]:
    """Return the glossary of a request, and the language of its terms if it is a stored one."""
    server, record = server_state(request), request_record(request)
    if body.glossary is not None and body.glossary_id is not None:
        raise InvalidRequest("`glossary` cannot be combined with `glossary_id`")
    if body.glossary is not None:
        record.resources.enter_context(server.glossary_memory.holding(record.client, memory_of(body.glossary)))
        now = time.monotonic()
        allowed = min(body.timeout_seconds or math.inf, server.settings.request_timeout_seconds)
        deadline = Deadline.of(now + allowed, now, time.monotonic)
        return await ThreadRunner(GLOSSARIES, deadline)(Glossary, body.glossary), None
    if body.glossary_id is not None:
        store = server.stored_glossaries()
        info = await asyncio.to_thread(store.info, body.glossary_id)
        return await asyncio.to_thread(store.dictionary, info.only.id), info.only.source
    return None, None


def _num_objects(asked: TranslationRequest, done: TranslationOutcome) -> int:
    """Return approximately how many models the answer has; with details, some for each token."""
    result = done.result
    num_tokens = result.sentence_tokens.num_target_tokens if asked.options.wants_details else 0
    num_alternatives = max(asked.options.num_hypotheses, 1) * len(result.translations)
    num_sentences = result.sentence_tokens.num_sentences if asked.options.return_quality else 0
    num_named = len(result.kept_spans) + len(result.kept_sentences) + sum(result.outcomes.values())
    num_named += result.num_low_quality + num_sentences + sum([len(each.memory) for each in result.translations])
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
    answer = TranslationAnswer.model_validate(translation)
    answer.leave_out_unrequested(asked.options)
    if detected is not None:
        confidence = round(detected.confidence, 4)
        answer.detected_language = DetectedLanguage(language=detected.language, confidence=confidence)
    if is_translated is not None:
        answer.translated = is_translated
    if (details := translation_details(translation)) is not None:
        answer.details = details
    return answer


_reports_of = attrgetter(
    *("protected", "kept", "formality_mismatches", "repaired", "incomplete", "missing_numbers", "invented_numbers"),
    *("sentence_quality", "low_quality", "memory"),
)


def translation_details(translation: Translation) -> TranslationDetails | None:
    """Return how a translation came about; None if there is nothing to report."""
    if not any(_reports_of(translation)):
        return None
    details = TranslationDetails.model_validate(translation)
    if translation.missing_numbers or translation.invented_numbers:
        details.numbers = NumbersAnswer.model_validate(translation)
    return details


NATIVE_PROTOCOL = Protocol(
    name="native",
    routers=(router, generation.router, models.router, documents.router),
    error_format=NATIVE,
    paths=("/v1/",),
    upload_paths=(documents.PATH,),
)
