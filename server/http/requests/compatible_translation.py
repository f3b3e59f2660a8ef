"""Translation for clients of other protocols, which spell languages in many ways."""

from collections.abc import Sequence

from fastapi import Request

from server.http.requests.translation_call import run_translation
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.language_tags import match_language, means_detection
from server.translation.service import AUTO, TranslationOutcome
from server.translation.types import TextFormat, TranslationRequest

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
