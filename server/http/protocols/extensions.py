"""Protocols of browser extensions with a custom service: a list of paragraphs is translated together."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from server.http.protocols.protocol import Protocol
from server.http.requests.parameters import Parameters, body_of, read_parameters
from server.http.requests.translation_call import source_codes, translate_texts
from server.http.responses.errors import ErrorFormat
from server.http.state import server_state
from server.interface.errors import InvalidRequest, TextTooLong
from server.text.language_tags import display_name, match_language, means_detection
from server.translation.types import TranslationRequest


class ExtensionError(BaseModel):
    """Body of an error response."""

    error: str


EXTENSIONS = ErrorFormat(
    lambda _, __, message: {"error": message}, ExtensionError, {InvalidRequest: 400, TextTooLong: 413}
)
extension_responses = EXTENSIONS.responses


router = APIRouter(
    tags=["Browser extensions"],
    responses=extension_responses(400, 413, 429, 500, 503, 504),
)

# Selection Translator names the two scripts unlike Unicode.
_CHINESE_NAMES = {"zh-Hans": "\u4e2d\u6587(\u7b80\u4f53)", "zh-Hant": "\u4e2d\u6587(\u7e41\u4f53)"}


async def _parameters(request: Request) -> Parameters:
    return await read_parameters(request)


Sent = Annotated[Parameters, Depends(_parameters)]


class ImmersiveFields(BaseModel):
    """Paragraphs and languages of Immersive Translate."""

    text_list: list[str]
    source_lang: str = Field("auto", description="a hint: detected if it is auto, unknown or the target")
    target_lang: str


class ImmersiveTranslation(BaseModel):
    """Translation of one paragraph."""

    detected_source_lang: str
    text: str


class ImmersiveAnswer(BaseModel):
    """The translations in the order of the paragraphs."""

    translations: list[ImmersiveTranslation]


@router.post("/imme", openapi_extra=body_of(ImmersiveFields, "application/json"))
async def immersive(request: Request, sent: Sent) -> ImmersiveAnswer:
    """Translate paragraphs for Immersive Translate ("Custom API")."""
    texts = _list(sent, "text_list")
    source = sent.text("source_lang")
    outcome = await translate_texts(request, texts, source, sent.text("target_lang"), source_is_hint=True)
    return ImmersiveAnswer(
        translations=[
            ImmersiveTranslation(detected_source_lang=code, text=translation.text)
            for code, translation in zip(source_codes(outcome, source), outcome.result.translations, strict=True)
        ]
    )


class KissFields(BaseModel):
    """A text, or paragraphs, and languages of KISS Translator."""

    model_config = {"populate_by_name": True}

    text: str | None = None
    texts: list[str] | None = Field(None, description="instead of text")
    source: str = Field("auto", alias="from")
    target: str = Field(alias="to")


class KissTranslation(BaseModel):
    """Translation of one text. `src` and `from` are its source language."""

    text: str
    src: str
    source: str = Field(serialization_alias="from")


class KissAnswer(BaseModel):
    """The translations in the order of the paragraphs."""

    translations: list[KissTranslation]


@router.post("/kiss", openapi_extra=body_of(KissFields, "application/json"))
async def kiss(request: Request, sent: Sent) -> KissTranslation | KissAnswer:
    """Translate a text or paragraphs for KISS Translator ("Custom")."""
    is_list = sent.is_list("texts")
    texts = _list(sent, "texts") if is_list else _one(sent, "text")
    source = sent.text("from")
    outcome = await translate_texts(request, texts, source, sent.text("to"), source_is_hint=True)
    answers = [
        KissTranslation(text=translation.text, src=code, source=code)
        for code, translation in zip(source_codes(outcome, source), outcome.result.translations, strict=True)
    ]
    return KissAnswer(translations=answers) if is_list else answers[0]


class SelectionFields(BaseModel):
    """A text and languages of Selection Translator, which are Chinese names."""

    name: str | None = Field(None, description="configured name of the service")
    text: str
    destination: list[str] = Field(description="the second language is for texts that are in the first")
    source: str | None = None


class SelectionAnswer(BaseModel):
    """The translation, line by line."""

    text: str
    source: str = Field(serialization_alias="from")
    to: str
    result: list[str]


@router.post("/hcfy", openapi_extra=body_of(SelectionFields, "application/json"))
async def selection(request: Request, sent: Sent) -> SelectionAnswer:
    """Translate a selection for Selection Translator (hcfy)."""
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
    return SelectionAnswer(
        text=text,
        source=source or _chinese_name(source_codes(outcome, None)[0]),
        to=target,
        result=translated.split("\n"),
    )


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
