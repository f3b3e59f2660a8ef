"""Protocols of browser extensions with a custom service: a list of paragraphs is translated together."""

from collections.abc import Iterator

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from server.http.protocols.protocol import Protocol
from server.http.requests.parameters import Parameters, body_of, read_parameters
from server.http.requests.translation_call import source_codes, translate_texts
from server.http.responses.errors import ErrorFormat
from server.http.responses.examples import answers
from server.http.state import server_state
from server.interface.errors import InvalidRequest, TextTooLong
from server.text.language_tags import display_name, match_language, means_detection
from server.translation.service import TranslationOutcome
from server.translation.types import TranslationRequest

EXTENSIONS = ErrorFormat(
    "ExtensionError", lambda _, __, message: {"error": message}, {InvalidRequest: 400, TextTooLong: 413}
)

router = APIRouter(tags=["Browser extensions"], responses=EXTENSIONS.responses(400, 413, 429, 500, 503, 504))

# Selection Translator names the two scripts unlike Unicode.
_CHINESE_NAMES = {"zh-Hans": "\u4e2d\u6587(\u7b80\u4f53)", "zh-Hant": "\u4e2d\u6587(\u7e41\u4f53)"}


class ImmersiveFields(BaseModel):
    """Paragraphs and languages of Immersive Translate."""

    text_list: list[str]
    source_lang: str = Field("auto", description="a hint: detected if it is auto, unknown or the target")
    target_lang: str


@router.post(
    "/imme",
    openapi_extra=body_of(ImmersiveFields, "application/json"),
    responses=answers("ImmersiveAnswer", {"translations": [{"detected_source_lang": "en", "text": "Guten Morgen."}]}),
)
async def immersive(request: Request) -> JSONResponse:
    """Translate paragraphs for Immersive Translate ("Custom API")."""
    sent = await read_parameters(request)
    texts = _list(sent, "text_list")
    source = sent.text("source_lang")
    outcome = await translate_texts(request, texts, source, sent.text("target_lang"), source_is_hint=True)
    translations = [{"detected_source_lang": code, "text": text} for code, text in _with_languages(outcome, source)]
    return JSONResponse({"translations": translations})


class KissFields(BaseModel):
    """A text, or paragraphs, and languages of KISS Translator."""

    model_config = {"populate_by_name": True}

    text: str | None = None
    texts: list[str] | None = Field(None, description="instead of text")
    source: str = Field("auto", alias="from")
    target: str = Field(alias="to")


_KISS = {"text": "Guten Morgen.", "src": "en", "from": "en"}


@router.post(
    "/kiss",
    openapi_extra=body_of(KissFields, "application/json"),
    responses=answers("KissAnswer", _KISS, {"translations": [_KISS]}),
)
async def kiss(request: Request) -> JSONResponse:
    """Translate a text or paragraphs for KISS Translator ("Custom")."""
    sent = await read_parameters(request)
    is_list = sent.is_list("texts")
    texts = _list(sent, "texts") if is_list else _one(sent, "text")
    source = sent.text("from")
    outcome = await translate_texts(request, texts, source, sent.text("to"), source_is_hint=True)
    translations = [{"text": text, "src": code, "from": code} for code, text in _with_languages(outcome, source)]
    return JSONResponse({"translations": translations} if is_list else translations[0])


class SelectionFields(BaseModel):
    """A text and languages of Selection Translator, which are Chinese names."""

    name: str | None = Field(None, description="configured name of the service")
    text: str
    destination: list[str] = Field(description="the second language is for texts that are in the first")
    source: str | None = None


@router.post(
    "/hcfy",
    openapi_extra=body_of(SelectionFields, "application/json"),
    responses=answers(
        "SelectionAnswer",
        {"text": "Good morning.", "from": "\u82f1\u8bed", "to": "\u5fb7\u8bed", "result": ["Guten Morgen."]},
    ),
)
async def selection(request: Request) -> JSONResponse:
    """Translate a selection for Selection Translator (hcfy). The result has the lines of the translation."""
    sent = await read_parameters(request)
    [text] = _one(sent, "text")
    destinations = [name for name in sent.texts("destination") if name.strip()]
    if not destinations:
        raise InvalidRequest("`destination` must have at least one language")
    source, target = sent.text("source"), destinations[0]
    if source is None or means_detection(source):
        service, _ = server_state(request).accept()
        [detection] = await service.detect(TranslationRequest((text[: service.max_text_characters],), "", ""))
        source = None if detection is None else _chinese_name(detection.language)
    if source is not None and len(destinations) > 1 and match_language(source, [target]) is not None:
        target = destinations[1]
    outcome = await translate_texts(request, [text], source, target, source_is_hint=True)
    translated = outcome.result.translations[0].text
    source = source or _chinese_name(source_codes(outcome, None)[0])
    return JSONResponse({"text": text, "from": source, "to": target, "result": translated.split("\n")})


def _with_languages(outcome: TranslationOutcome, source: str | None) -> Iterator[tuple[str, str]]:
    """Return the source language and the translation of each text."""
    texts = (each.text for each in outcome.result.translations)
    return zip(source_codes(outcome, source), texts, strict=True)


def _list(sent: Parameters, name: str) -> list[str]:
    if not sent.is_list(name):
        raise InvalidRequest(f"`{name}` must be a list of strings")
    return sent.texts(name)


def _one(sent: Parameters, name: str) -> list[str]:
    text = sent.text(name)
    if text is None or sent.is_list(name):
        raise InvalidRequest(f"`{name}` must be a string")
    return [text]


def _chinese_name(tag: str) -> str:
    script = match_language(tag, list(_CHINESE_NAMES))
    return display_name(tag, "zh") if script is None else _CHINESE_NAMES[script]


EXTENSIONS_PROTOCOL = Protocol(
    name="extensions",
    routers=(router,),
    error_format=EXTENSIONS,
    paths=("/imme", "/kiss", "/hcfy"),
    key_queries=("token",),
)
