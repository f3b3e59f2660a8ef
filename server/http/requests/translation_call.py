"""Steps that every protocol takes between reading a request and writing its response."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fastapi import Request

from server.http.requests.admission import admit, charge
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.memories import default_memory
from server.http.requests.parameters import header
from server.http.state import RequestRecord, request_record, server_state
from server.interface.decoding_options import NO_OPTIONS, DetailOptions
from server.interface.errors import InvalidRequest
from server.text.language_tags import match_language, means_detection
from server.translation.service import AUTO, TranslationOutcome, TranslationService
from server.translation.types import TextFormat, TranslationRequest
from server.translation.whole_texts import GenerationOutcome

# For each character of a text: measured with sentences of 100 characters, which have 25 tokens.
_ATTENTION_BYTES: Final = 1000
_ALTERNATIVE_BYTES: Final = 15


async def run_translation(
    request: Request, translation: TranslationRequest, source: str | None, target: str | None
) -> TranslationOutcome:
    """Translate from `source` to `target`, record the outcome for the log, and cancel if the client disconnects."""
    service, translation = accept(request, translation)
    outcome = await unless_disconnected(request, service.translate(translation, source, target))
    record_outcome(request_record(request), outcome)
    return outcome


def accept(request: Request, translation: TranslationRequest) -> tuple[TranslationService, TranslationRequest]:
    """Return the translation service and the request for it, and record the request's size for the log.

    `Cache-Control: no-cache` sets `bypass_cache`. Raises `Draining` during start-up and shutdown, and `QueueFull` if
    the details requested so far exceed the memory limit for responses, or the API key its quota.
    """
    service, _ = server_state(request).accept()
    begin_call(request, len(translation.texts), translation.num_characters, translation.options)
    if translation.memory is None and (memory := default_memory(request)) is not None:
        translation = replace(translation, memory=memory)
    return service, replace(translation, bypass_cache=True) if bypasses_cache(request) else translation


def begin_call(request: Request, num_texts: int, num_characters: int, options: DetailOptions = NO_OPTIONS) -> bool:
    """Admit a call, record its size, and charge its API key. Return whether the answer has many details.

    Raises `QueueFull` or `Draining` if no model accepts a request now, and `QueueFull` if the details exceed the memory
    limit for responses, or the key its quota.
    """
    record = request_record(request)
    admit(server_state(request), record)
    record.num_texts, record.num_characters = num_texts, num_characters
    charge(request, num_characters)
    if num_bytes := expected_detail_bytes(options, num_characters):
        record.resources.enter_context(server_state(request).expected.holding(record.client, num_bytes))
    return bool(num_bytes)


def bypasses_cache(request: Request) -> bool:
    """Return whether a request has `Cache-Control: no-cache`."""
    directives = header(request.scope, b"cache-control").split(",")
    return "no-cache" in [directive.strip().lower() for directive in directives]


def expected_detail_bytes(options: DetailOptions, num_characters: int) -> int:
    """Estimate the JSON of token details, in bytes. 0 without any."""
    by_character = options.num_token_alternatives * _ALTERNATIVE_BYTES
    by_character += _ATTENTION_BYTES if options.return_attention else 0
    return by_character * num_characters


def record_outcome(record: RequestRecord, outcome: TranslationOutcome | GenerationOutcome) -> None:
    """Keep the outcome of a request for the log and the metrics."""
    record.result, record.model = outcome.result, outcome.model


_MAX_LANGUAGE_CHARACTERS = 64  # the longest real language tags have half as many


def check_language(language: str, name: str) -> None:
    """Raise `InvalidRequest` for a language that is too long.

    Only its beginning is compared with the languages of models, and some protocols repeat it for each text.
    """
    if len(language) > _MAX_LANGUAGE_CHARACTERS:
        raise InvalidRequest(
            f"the {name} must have at most {_MAX_LANGUAGE_CHARACTERS} characters. Given: {len(language)}"
        )


async def translate_texts(
    request: Request,
    texts: Sequence[str],
    source: str | None,
    target: str | None,
    *,
    format: TextFormat = "text",  # noqa: A002 - named like the field
    source_is_hint: bool = False,
) -> TranslationOutcome:
    """Translate texts together. A missing `source`, or `auto`, is detected for each text.

    With `source_is_hint`, it is also detected if no model reads it or if it is the target: extensions send the language
    of the page, which is not that of all its paragraphs. Raises `InvalidRequest` without a target, and for languages
    that are too long.
    """
    if means_detection(target) or target is None:
        raise InvalidRequest("the target language is missing")
    check_language(source or "", "source language")
    check_language(target, "target language")
    _, model_router = server_state(request).accept()
    if source is None or means_detection(source):
        source = AUTO
    elif source_is_hint:
        known = match_language(source, model_router.source_languages)
        source = source if known is not None and match_language(known, [target]) is None else AUTO
    return await run_translation(request, TranslationRequest(tuple(texts), "", "", format=format), source, target)


def source_codes(outcome: TranslationOutcome, source: str | None) -> list[str]:
    """Return the source language of each text: the caller's code, or the tag that was detected.

    A text without letters counts as the language of the others, or as the first that the route reads.
    """
    num_texts = len(outcome.result.translations)
    if not outcome.detected:
        return [source or outcome.routes[0].source] * num_texts if num_texts else []
    found = [None if each is None else each.language for each in outcome.detected]
    default = next((tag for tag in found if tag is not None), "en")
    return [tag or default for tag in found]
