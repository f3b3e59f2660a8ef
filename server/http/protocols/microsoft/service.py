"""Microsoft-compatible routes for languages, detection and sentence boundaries."""

import asyncio

from babel import Locale, UnknownLocaleError
from fastapi import APIRouter, Request
from pydantic import BaseModel

from server.http.protocols.microsoft.errors import microsoft_responses
from server.http.protocols.microsoft.fields import microsoft_code, texts_of
from server.http.requests.parameters import read_json
from server.http.state import server_state
from server.text.language_tags import display_name, match_language
from server.text.segmentation.sentences import split
from server.translation.types import TranslationRequest

router = APIRouter(tags=["Microsoft-compatible"], responses=microsoft_responses(400, 413, 500, 503))

PREFIXES = ("/microsoft", "/translator/text/v3.0")


class MicrosoftLanguage(BaseModel):
    """Names of a language, and the direction of its script."""

    name: str
    nativeName: str  # noqa: N815 - the protocol's name
    dir: str


class MicrosoftLanguages(BaseModel):
    """Languages by their codes."""

    translation: dict[str, MicrosoftLanguage]


class MicrosoftDetection(BaseModel):
    """The most likely language of a text."""

    language: str
    score: float
    isTranslationSupported: bool = True  # noqa: N815 - the protocol's names
    isTransliterationSupported: bool = False  # noqa: N815


class Sentences(BaseModel):
    """Lengths of the sentences of a text, in UTF-16 code units, with the blanks behind them."""

    sentLen: list[int]  # noqa: N815 - the protocol's name


@router.get("/microsoft/languages")
@router.get("/translator/text/v3.0/languages")
async def languages(request: Request) -> MicrosoftLanguages:
    """Return all languages. Answers also at `/languages`, recognised by `api-version`."""
    _, model_router = server_state(request).accept()
    tags = sorted({*model_router.source_languages, *model_router.target_languages})
    return MicrosoftLanguages(translation={microsoft_code(tag): _language(tag) for tag in tags})


@router.post("/microsoft/detect")
@router.post("/translator/text/v3.0/detect")
async def detect(request: Request) -> list[MicrosoftDetection]:
    """Return the most likely language of each text. Answers also at `/detect`, recognised by `api-version`."""
    texts = texts_of(request, await read_json(request))
    service, _ = server_state(request).accept()
    found = await service.detect(TranslationRequest(tuple(texts), "", ""))
    # Clients require a language; a text without letters counts as English.
    return [
        MicrosoftDetection(language="en", score=0)
        if each is None
        else MicrosoftDetection(language=microsoft_code(each.language), score=round(each.confidence, 4))
        for each in found
    ]


@router.post("/microsoft/breaksentence")
@router.post("/translator/text/v3.0/breaksentence")
async def break_sentences(request: Request) -> list[Sentences]:
    """Return the lengths of the sentences of each text. Answers also at `/breaksentence`."""
    texts = texts_of(request, await read_json(request))
    service, model_router = server_state(request).accept()
    found = await service.detect(TranslationRequest(tuple(texts), "", ""))
    named = match_language(request.query_params.get("language", ""), model_router.source_languages)
    sources = [named or ("en" if each is None else each.language) for each in found]
    return await asyncio.to_thread(
        lambda: [Sentences(sentLen=_lengths(text, source)) for text, source in zip(texts, sources, strict=True)]
    )


def _lengths(text: str, language: str) -> list[int]:
    segments = split(text, language, lambda _: True)
    parts = (segment.before + segment.text + segment.after for segment in segments)
    return [len(part.encode("utf-16-le", "surrogatepass")) // 2 for part in parts if part]


def _language(tag: str) -> MicrosoftLanguage:
    try:
        direction = Locale.parse(tag.replace("-", "_")).text_direction
    except (ValueError, UnknownLocaleError):
        direction = "ltr"
    return MicrosoftLanguage(name=display_name(tag), nativeName=display_name(tag, tag), dir=direction)
