"""LibreTranslate-compatible: texts and languages, for clients that were written for that server."""

import math
from collections.abc import Sequence

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from server.http.requests.admission import check_room
from server.http.requests.openapi_bodies import body_of
from server.http.requests.parameters import Parameters, closes_forms, read_parameters
from server.http.requests.translation_call import interpret
from server.http.responses.errors import libretranslate_responses
from server.http.state import ServerState, server_state
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest, UnsupportedPair
from server.text.language_detection import Detection
from server.text.language_tags import display_name, match_language
from server.translation.router import Router
from server.translation.service import AUTO, TranslationOutcome
from server.translation.types import TranslationRequest

router = APIRouter(tags=["LibreTranslate-compatible"], dependencies=[Depends(closes_forms)])

# Codes of that protocol and the tags they mean; the last two are what bundles call simplified Chinese.
_TAG_OF_CODE = {"pb": "pt-BR", "zt": "zh-Hant"}
_CODE_OF_TAG = {"pb": "pt-BR", "zt": "zh-Hant", "zh": "zh-Hans", "zh-cn": "zh-Hans"}
_NO_LANGUAGE = "en"  # what clients expect of a text that is in none
_MAX_TAG_CHARACTERS = 64


class TranslateFields(BaseModel):
    """One text or several, and their languages."""

    q: str | list[str] = Field(description="a text, or in JSON a list of texts; in a form it may be repeated")
    source: str = Field(description="language of the texts, or auto: each is detected")
    target: str = Field(description="language to translate into")
    format: str = Field("text", description="text or html")
    alternatives: int = Field(0, description="other translations of each text, at most")
    api_key: str | None = None


class DetectFields(BaseModel):
    """A text in an unknown language."""

    q: str | list[str]
    api_key: str | None = None


class Detected(BaseModel):
    """A language that a text may be in; `confidence` is from 0 to 100."""

    confidence: int
    language: str


class Translated(BaseModel):
    """For a list of texts every field is a list."""

    translatedText: str | list[str]  # noqa: N815 - the protocol's name
    detectedLanguage: Detected | list[Detected] | None = Field(None, description="where source is auto")  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = Field(None, description="where any were asked for")


class LanguageAnswer(BaseModel):
    """A language, and what it can be translated into."""

    code: str
    name: str
    targets: list[str]


@router.post(
    "/translate",
    dependencies=[Depends(check_room)],
    response_model_exclude_none=True,
    openapi_extra=body_of(TranslateFields),
    responses=libretranslate_responses(400, 413, 429, 500, 503, 504),
)
async def translate(request: Request) -> Translated:
    """Translate one text or several; in a form, line breaks become \\n."""
    server = server_state(request)
    sent = await read_parameters(request, server.settings.max_texts + 10)
    texts = _texts(sent)
    source, target = required_tag(sent, "source"), required_tag(sent, "target")
    num_alternatives = _num_alternatives(sent, server.settings.max_beam_size - 1)
    _, catalogue = server.accept()
    _check_size(texts, server)
    check_languages(catalogue, source, target)
    format_ = sent.text("format") or "text"
    if format_ not in ("text", "html"):
        raise InvalidRequest(f"{format_} format is not supported")
    if format_ == "html":
        asked = TranslationRequest(texts, "", "", format="html")
    else:
        asked = TranslationRequest(texts, "", "", DecodingOptions(num_hypotheses=1 + num_alternatives))
    done = await interpret(request, asked, source, target)
    return _answer(done, sent.is_list("q"), num_alternatives)


@router.post(
    "/detect",
    openapi_extra=body_of(DetectFields),
    responses=libretranslate_responses(400, 413, 500, 503),
)
async def detect(request: Request) -> list[Detected]:
    """The languages that a text may be in, the likeliest first."""
    server = server_state(request)
    sent = await read_parameters(request, server.settings.max_texts + 10)
    text = "\n".join(_texts(sent))
    interpreter, _ = server.accept()
    _check_size((text,), server)
    best, *others = [_detected(each) for each in await interpreter.rank(text)] or [_detected(None)]
    return [best, *(each for each in others if each.confidence > 0)]


@router.head("/languages", include_in_schema=False)
@router.get("/languages", responses=libretranslate_responses(500, 503))
async def languages(request: Request) -> list[LanguageAnswer]:
    """Every language, and what it can be translated into."""
    _, catalogue = server_state(request).accept()
    targets: dict[str, list[str]] = {}
    for route in catalogue.routes:
        targets.setdefault(route.source, []).append(code_of(route.target))
        targets.setdefault(route.target, [])
    return [
        LanguageAnswer(code=code_of(language), name=display_name(language), targets=sorted(into))
        for language, into in sorted(targets.items())
    ]


def code_of(tag: str) -> str:
    """What this protocol calls a language."""
    code = tag.replace("_", "-")
    return _CODE_OF_TAG.get(code.casefold(), code)


def _texts(sent: Parameters) -> tuple[str, ...]:
    texts = sent.texts("q")
    if not texts or (not sent.is_list("q") and not texts[0]):
        raise InvalidRequest("Invalid request: missing q parameter")
    # In a form browsers end lines in their own way. The last one is kept: in message catalogues it has a meaning.
    return tuple(texts) if sent.is_json else tuple(text.replace("\r\n", "\n").replace("\r", "\n") for text in texts)


def required_tag(sent: Parameters, name: str) -> str:
    """A language that must be named, in our terms."""
    code = (sent.text(name) or "").strip()
    if not code:
        raise InvalidRequest(f"Invalid request: missing {name} parameter")
    code = code[:_MAX_TAG_CHARACTERS].lower()
    return _TAG_OF_CODE.get(code, code)


def _num_alternatives(sent: Parameters, most: int) -> int:
    try:
        number = max(sent.integer("alternatives") or 0, 0)
    except ValueError as error:
        raise InvalidRequest("Invalid request: alternatives parameter is not a number") from error
    if number > most:
        raise InvalidRequest(f"Invalid request: alternatives parameter must be <= {most}")
    return number


def _check_size(texts: Sequence[str], server: ServerState) -> None:
    limits = ((len(texts), server.settings.max_texts), (sum(map(len, texts)), server.settings.max_text_characters))
    for size, limit in limits:
        if size > limit:
            raise InvalidRequest(f"Invalid request: request ({size}) exceeds text limit ({limit})")


def check_languages(catalogue: Router, source: str, target: str) -> None:
    """Raise `InvalidRequest` in the words of the protocol unless these can be translated."""
    known = catalogue.source_languages + catalogue.target_languages
    for tag in (source, target):
        if tag != AUTO and match_language(tag, known) is None:
            raise InvalidRequest(f"{tag} is not supported")
    if target == AUTO:
        raise InvalidRequest(f"{target} is not supported")
    if source != AUTO:
        try:
            catalogue.find(source, target)
        except UnsupportedPair as error:
            raise UnsupportedPair(
                f"{display_name(target)} ({code_of(target)}) is not available as a target language "
                f"from {display_name(source)} ({code_of(source)})"
            ) from error


def _answer(done: TranslationOutcome, is_list: bool, num_alternatives: int) -> Translated:
    translations = done.result.translations
    texts = [translation.text for translation in translations]
    others = [
        list(dict.fromkeys(other.text for other in each.alternatives if other.text != each.text))
        for each in translations
    ]
    languages = [_detected(each) for each in done.detected]
    return Translated(
        translatedText=texts if is_list else texts[0],
        detectedLanguage=None if not languages else languages if is_list else languages[0],
        alternatives=None if not num_alternatives else others if is_list else others[0],
    )


def _detected(detection: Detection | None) -> Detected:
    if detection is None:
        return Detected(confidence=0, language=_NO_LANGUAGE)
    # Rounded down: a hundred is said of nothing less.
    return Detected(confidence=math.floor(detection.confidence * 100), language=code_of(detection.language))
