"""LibreTranslate-compatible protocol: texts, documents, and what describes the server."""

import math
from collections.abc import Sequence
from typing import get_args
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel, Field

from server.documents.formats.options import FormatOptions
from server.documents.formats.registry import FORMATS
from server.documents.jobs import JobStatus
from server.documents.text_translation import document_translation
from server.http.protocols.protocol import Protocol
from server.http.requests.admission import charged
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.memories import default_memory
from server.http.requests.parameters import Parameters, body_of, read_parameters
from server.http.requests.translation_call import run_translation
from server.http.responses.download import download
from server.http.responses.errors import ErrorFormat
from server.http.responses.examples import answers
from server.http.state import ServerState, server_state
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import (
    EngineFailed,
    InvalidApiKey,
    InvalidRequest,
    MissingApiKey,
    UnsupportedFormat,
    UnsupportedPair,
)
from server.text.language_detection import Detection
from server.text.language_tags import display_name, match_language
from server.translation.router import Router
from server.translation.service import AUTO, TranslationOutcome
from server.translation.types import TextContext, TranslationRequest

LIBRETRANSLATE = ErrorFormat(
    "LibreTranslateError",
    lambda _, __, message: {"error": message},
    {InvalidRequest: 400, MissingApiKey: 400, InvalidApiKey: 403},
)
libretranslate_responses = LIBRETRANSLATE.responses


router = APIRouter(tags=["LibreTranslate-compatible"])

# Codes of the protocol and their tags; the last two are names of simplified Chinese in bundles.
_TAG_OF_CODE = {"pb": "pt-BR", "zt": "zh-Hant"}
_CODE_OF_TAG = {"pb": "pt-BR", "zt": "zh-Hant", "zh": "zh-Hans", "zh-cn": "zh-Hans"}
_NO_LANGUAGE = "en"  # clients expect this code for a text without a language
_MAX_TAG_CHARACTERS = 64


class TranslateFields(BaseModel):
    """Texts, languages and options of a translation."""

    q: str | list[str] = Field(description="a text, or a list of texts in JSON; may be repeated in a form")
    source: str = Field(description="language of the texts; auto: each is detected")
    target: str = Field(description="language to translate into")
    format: str = Field("text", description="text or html")
    context: str | None = Field(
        None, description="lines: translate texts of a list together that one sentence runs over; none: each by itself"
    )
    alternatives: int = Field(0, description="maximum number of other translations of each text")
    api_key: str | None = None


class DetectFields(BaseModel):
    """Text whose language is to be detected."""

    q: str | list[str]
    api_key: str | None = None


_DETECTED = {"confidence": 90, "language": "en"}
_TRANSLATED = {"translatedText": "Guten Tag.", "detectedLanguage": _DETECTED, "alternatives": ["Guten Morgen."]}


@router.post(
    "/translate",
    openapi_extra=body_of(TranslateFields),
    responses={
        **answers(
            "Translated",
            _TRANSLATED,
            {name: [each] for name, each in _TRANSLATED.items()},
            optional=["detectedLanguage", "alternatives"],
        ),
        **libretranslate_responses(400, 413, 429, 500, 503, 504),
    },
)
async def translate(request: Request) -> JSONResponse:
    """Translate one or several texts. Line breaks of a form become \\n.

    The language is in the answer if `source` is auto, alternatives if some are requested; each field is a list if `q`
    is one.
    """
    server = server_state(request)
    sent = await read_parameters(request)
    texts = _texts(sent)
    source, target = required_tag(sent, "source"), required_tag(sent, "target")
    num_alternatives = _num_alternatives(sent, server.settings.max_beam_size - 1)
    _, model_router = server.accept()
    _check_size(texts, server)
    check_languages(model_router, source, target)
    format_ = sent.text("format") or "text"
    if format_ not in ("text", "html"):
        raise InvalidRequest(f"{format_} format is not supported")
    context = sent.text("context")
    if context not in (None, "", *get_args(TextContext)):
        raise InvalidRequest(f"{context} context is not supported")
    joins_lines = context == "lines" if context else None
    if format_ == "html":
        translation = TranslationRequest(texts, "", "", format="html", joins_lines=joins_lines)
    else:
        options = DecodingOptions(num_hypotheses=1 + num_alternatives)
        translation = TranslationRequest(texts, "", "", options, joins_lines=joins_lines)
    outcome = await run_translation(request, translation, source, target)
    return JSONResponse(_answer(outcome, sent.is_list("q"), num_alternatives))


@router.post(
    "/detect",
    openapi_extra=body_of(DetectFields),
    responses={**answers("Detections", [_DETECTED]), **libretranslate_responses(400, 413, 500, 503)},
)
async def detect(request: Request) -> JSONResponse:
    """Return the languages that a text may be in, most likely first."""
    server = server_state(request)
    sent = await read_parameters(request)
    text = "\n".join(_texts(sent))
    service, _ = server.accept()
    _check_size((text,), server)
    [ranked] = await service.rank((text,))
    best, *others = [_detected(each) for each in ranked] or [_detected(None)]
    return JSONResponse([best, *(each for each in others if each["confidence"])])


@router.head("/languages", include_in_schema=False)
@router.get(
    "/languages",
    responses={
        **answers("LibreTranslateLanguages", [{"code": "en", "name": "English", "targets": ["de"]}]),
        **libretranslate_responses(500, 503),
    },
)
async def languages(request: Request) -> JSONResponse:
    """Return every language with its target languages."""
    _, model_router = server_state(request).accept()
    targets: dict[str, list[str]] = {}
    for route in model_router.routes:
        targets.setdefault(route.source, []).append(code_of(route.target))
        targets.setdefault(route.target, [])
    return JSONResponse([_named(language) | {"targets": sorted(into)} for language, into in sorted(targets.items())])


def _named(tag: str) -> dict[str, object]:
    return {"code": code_of(tag), "name": display_name(tag)}


def code_of(tag: str) -> str:
    """Return this protocol's code for a language."""
    code = tag.replace("_", "-")
    return _CODE_OF_TAG.get(code.casefold(), code)


def _texts(sent: Parameters) -> tuple[str, ...]:
    texts = sent.texts("q")
    if not texts or (not sent.is_list("q") and not texts[0]):
        raise InvalidRequest("Invalid request: missing q parameter")
    # Browsers end the lines of a form with \r\n. A final line break is kept: it matters in message catalogues.
    return tuple(texts) if sent.is_json else tuple(text.replace("\r\n", "\n").replace("\r", "\n") for text in texts)


def required_tag(sent: Parameters, name: str) -> str:
    """Return the tag of a required language. Raises `InvalidRequest` if it is missing."""
    code = (sent.text(name) or "").strip()
    if not code:
        raise InvalidRequest(f"Invalid request: missing {name} parameter")
    code = code[:_MAX_TAG_CHARACTERS].lower()
    return _TAG_OF_CODE.get(code, code)


def _num_alternatives(sent: Parameters, maximum: int) -> int:
    try:
        number = max(sent.integer("alternatives") or 0, 0)
    except ValueError as error:
        raise InvalidRequest("Invalid request: alternatives parameter is not a number") from error
    if number > maximum:
        raise InvalidRequest(f"Invalid request: alternatives parameter must be <= {maximum}")
    return number


def _check_size(texts: Sequence[str], server: ServerState) -> None:
    limits = ((len(texts), server.settings.max_texts), (sum(map(len, texts)), server.settings.max_text_characters))
    for size, limit in limits:
        if size > limit:
            raise InvalidRequest(f"Invalid request: request ({size}) exceeds text limit ({limit})")


def check_languages(model_router: Router, source: str, target: str) -> None:
    """Raise `InvalidRequest`, worded as by LibreTranslate, unless the pair can be translated."""
    known = model_router.source_languages + model_router.target_languages
    for tag in (source, target):
        if tag != AUTO and match_language(tag, known) is None:
            raise InvalidRequest(f"{tag} is not supported")
    if target == AUTO:
        raise InvalidRequest(f"{target} is not supported")
    if source != AUTO:
        try:
            model_router.find(source, target)
        except UnsupportedPair as error:
            raise UnsupportedPair(
                f"{display_name(target)} ({code_of(target)}) is not available as a target language "
                f"from {display_name(source)} ({code_of(source)})"
            ) from error


def _answer(outcome: TranslationOutcome, is_list: bool, num_alternatives: int) -> dict[str, object]:
    translations = outcome.result.translations
    texts = [translation.text for translation in translations]
    alternatives = [
        list(dict.fromkeys(other.text for other in each.alternatives if other.text != each.text))
        for each in translations
    ]
    fields: dict[str, Sequence[object]] = {"translatedText": texts}
    if outcome.detected:
        fields["detectedLanguage"] = [_detected(each) for each in outcome.detected]
    if num_alternatives:
        fields["alternatives"] = alternatives
    return {name: values if is_list else values[0] for name, values in fields.items()}


def _detected(detection: Detection | None) -> dict[str, object]:
    if detection is None:
        return {"confidence": 0, "language": _NO_LANGUAGE}
    # Rounded down, so that 100 means certainty.
    return {"confidence": math.floor(detection.confidence * 100), "language": code_of(detection.language)}


PATH = "/translate_file"


class FileFields(BaseModel):
    """A document, and its languages."""

    file: str = Field(json_schema_extra={"format": "binary"})
    source: str = Field(description="language of the document, or auto")
    target: str = Field(description="language to translate into")
    api_key: str | None = None


@router.post(
    PATH,
    openapi_extra=body_of(FileFields, "multipart/form-data"),
    responses={
        **answers("TranslatedFile", {"translatedFileUrl": "http://localhost:8000/download_file/0.letter.docx"}),
        **libretranslate_responses(400, 413, 429, 500, 503, 504),
    },
)
async def translate_file(request: Request) -> JSONResponse:
    """Translate a document; the answer comes when it is done. /v1/documents does not keep you waiting."""
    server = server_state(request)
    sent = await read_parameters(request)
    file = sent.file("file")
    if file is None:
        raise InvalidRequest("Invalid request: missing file parameter")
    source, target = required_tag(sent, "source"), required_tag(sent, "target")
    interpreter, catalogue = server.accept()
    check_languages(catalogue, source, target)
    if not file.filename or not file.size:
        raise InvalidRequest("Invalid request: empty file")
    asked = TranslationRequest((), "", "", memory=default_memory(request))
    translate = document_translation(interpreter, asked, source, target, server.metrics.translated)
    try:
        options = FormatOptions(language=interpreter.check(asked, source, target))
        job = await server.documents.submit(file.filename, file.file, charged(request, translate), options)
    except UnsupportedFormat as error:
        raise InvalidRequest("Invalid request: file format not supported") from error
    try:
        job = await unless_disconnected(request, server.documents.wait(job.id))
    except BaseException:
        await server.documents.delete(job.id)
        raise
    if job.status is not JobStatus.DONE:
        await server.documents.delete(job.id)
        raise job.error or EngineFailed("the document could not be translated")
    # url_for writes a name as it is, and names have blanks, "#" and letters in them.
    name = quote(f"{job.id}.{job.name}", safe="")
    return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", name=name))})


@router.get(
    "/download_file/{name}",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The translated document."},
        **libretranslate_responses(404, 409),
    },
)
async def download_file(request: Request, name: str) -> StreamingResponse:
    """A translated document; it is kept for a while."""
    return download(server_state(request).documents.open(name.partition(".")[0]))


@router.head("/health", include_in_schema=False)
@router.get("/health", responses=answers("LibreTranslateHealth", {"status": "ok"}))
async def health(_: Request) -> JSONResponse:
    """Return that the server is up. /health/ready is more precise."""
    return JSONResponse({"status": "ok"})


_SOURCE = {"code": "auto", "name": "Auto Detect"}
_SETTINGS = {
    "charLimit": 100_000,
    "frontendTimeout": 500,
    "apiKeys": False,
    "keyRequired": False,
    "suggestions": False,
    "filesTranslation": True,
    "supportedFilesFormat": list(FORMATS),
    "language": {"source": _SOURCE, "target": {"code": "de", "name": "German"}},
}


@router.get(
    "/frontend/settings",
    responses={**answers("FrontendSettings", _SETTINGS), **libretranslate_responses(500, 503)},
)
async def frontend_settings(request: Request) -> JSONResponse:
    """Return limits and features."""
    server = server_state(request)
    _, model_router = server.accept()
    has_keys = server.key_gate is not None
    limits = {"charLimit": server.settings.max_text_characters, "apiKeys": has_keys, "keyRequired": has_keys}
    target = _named(model_router.target_languages[0])
    return JSONResponse(_SETTINGS | limits | {"language": {"source": _SOURCE, "target": target}})


@router.post("/suggest", status_code=403, responses=libretranslate_responses(403))
async def suggest(_: Request) -> JSONResponse:
    """Reject the suggestion; this server does not collect any."""
    return JSONResponse({"error": "Suggestions are disabled on this server."}, 403)


LIBRETRANSLATE_PROTOCOL = Protocol(
    name="libretranslate",
    routers=(router,),
    error_format=LIBRETRANSLATE,
    paths=(
        "/translate",
        "/detect",
        "/languages",
        "/health",
        "/frontend/settings",
        PATH,
        "/download_file/",
        "/suggest",
    ),
    upload_paths=(PATH,),
    engine_free_paths=("/detect", "/suggest"),
    # A download needs the id of its document, which is a secret of its own: browsers follow the link without a key.
    open_paths=("/languages", "/health", "/frontend/settings", "/download_file/"),
    key_parameter="api_key",
)
