"""Apertium-compatible protocol (APY): translation, pairs of languages, detection."""

import json
import re
from http import HTTPStatus

from babel.core import get_global
from fastapi import APIRouter, Request
from fastapi.responses import Response

from server.http.protocols.protocol import Protocol, SharedPaths
from server.http.requests.parameters import Parameters, read_parameters
from server.http.requests.translation_call import translate_texts
from server.http.responses.errors import ErrorFormat
from server.http.state import server_state
from server.interface.errors import InvalidRequest, TextTooLong
from server.translation.types import TextFormat


def _body(status: int, _: str, message: str) -> dict[str, object]:
    """Return an error. Some clients show `responseDetails`, others `explanation`."""
    phrase = HTTPStatus(status).phrase if status in list(HTTPStatus) else "Error"
    return {
        "status": "error",
        "code": status,
        "message": phrase,
        "explanation": message,
        "responseData": None,
        "responseDetails": message,
        "responseStatus": status,
    }


APERTIUM = ErrorFormat("ApertiumError", _body, {InvalidRequest: 400, TextTooLong: 413})

router = APIRouter(tags=["Apertium-compatible"], responses=APERTIUM.responses(400, 413, 429, 500, 503, 504))

_FORMATS: dict[str, TextFormat] = {"": "html", "html": "html", "txt": "text", "text": "text"}
_FUNCTION_NAME = re.compile(r"[A-Za-z_$][\w$.]{0,99}", re.ASCII)


@router.get("/apertium/translate")
@router.post("/apertium/translate")
async def translate(request: Request) -> Response:
    """Translate `q` for `langpair` (`eng|deu` or `en|de`). Answers also at `/translate`, recognised by `langpair`."""
    sent = await read_parameters(request)
    text = sent.required_text("q", "Missing 1 required argument: q")
    source, separator, target = (sent.text("langpair") or "").partition("|")
    if not separator or not source.strip():
        raise InvalidRequest("That pair is invalid, use e.g. eng|spa")
    outcome = await translate_texts(request, [text], source, target, format=sent.choice("format", _FORMATS))
    return _answer(sent, {"translatedText": outcome.result.translations[0].text})


@router.get("/apertium/listPairs")
@router.post("/apertium/listPairs", include_in_schema=False)
async def list_pairs(request: Request) -> Response:
    """Return all pairs of languages, with codes of two letters and of three. Answers also at `/listPairs`."""
    sent = await read_parameters(request)
    _, model_router = server_state(request).accept()
    pairs = []
    for spelled in (_three_letters, str):
        pairs += [
            {"sourceLanguage": spelled(route.source), "targetLanguage": spelled(route.target)}
            for route in model_router.routes
        ]
    return _answer(sent, [pair for index, pair in enumerate(pairs) if pair not in pairs[:index]])


@router.get("/apertium/identifyLang")
@router.post("/apertium/identifyLang")
async def identify(request: Request) -> Response:
    """Return the probability of each language of `q`. Answers also at `/identifyLang`."""
    sent = await read_parameters(request)
    text = sent.required_text("q", "Missing 1 required argument: q")
    service, _ = server_state(request).accept()
    [ranked] = await service.rank((text,))
    return _json(sent, {_three_letters(each.language): round(each.confidence, 4) for each in ranked})


def _answer(sent: Parameters, data: object) -> Response:
    return _json(sent, {"responseData": data, "responseDetails": None, "responseStatus": 200})


def _json(sent: Parameters, content: object) -> Response:
    """Return the answer, as a call of the function that `callback` names if it does."""
    text = json.dumps(content, ensure_ascii=False)
    callback = sent.text("callback")
    if not callback:
        return Response(text, media_type="application/json")
    if not _FUNCTION_NAME.fullmatch(callback):
        raise InvalidRequest("`callback` must be the name of a function")
    headers = {"X-Content-Type-Options": "nosniff"}
    return Response(f"/**/{callback}({text})", media_type="text/javascript", headers=headers)


def _three_letters(tag: str) -> str:
    """Return a language with its code of three letters, if it has one: `deu` for `de`."""
    primary, *rest = tag.replace("_", "-").split("-")
    long = _long_codes().get(primary.casefold(), primary)
    return "_".join((long, *rest))


def _long_codes() -> dict[str, str]:
    """Return the codes of ISO 639-3 by those of ISO 639-1. The first is that of the language in general."""
    aliases = get_global("language_aliases")
    return {
        short: long for long, short in reversed(list(aliases.items())) if len(long) == 3 and len(short) == 2
    } | _PREFERRED


# Where several codes mean one language: not those of a single dialect, nor the older ones of libraries.
_PREFERRED = {
    "ar": "ara", "cs": "ces", "cy": "cym", "de": "deu", "el": "ell", "et": "est", "eu": "eus", "fa": "fas", "fr": "fra",
    "he": "heb", "hr": "hrv", "hy": "hye", "is": "isl", "ka": "kat", "lv": "lav", "mk": "mkd", "ms": "msa", "nl": "nld",
    "ro": "ron", "sk": "slk", "sq": "sqi", "sr": "srp", "sw": "swa", "zh": "zho",
}  # fmt: skip


APERTIUM_PROTOCOL = Protocol(
    name="apertium",
    routers=(router,),
    error_format=APERTIUM,
    paths=("/apertium/", "/listPairs", "/list", "/identifyLang"),
    shared=(SharedPaths("/apertium", ("/translate",), lambda fields: fields.has("langpair")),),
    aliases={
        "/identifyLang": "/apertium/identifyLang",
        **dict.fromkeys(("/list", "/listPairs", "/apertium/list"), "/apertium/listPairs"),
    },
    open_paths=("/apertium/listPairs",),
    engine_free_paths=("/apertium/listPairs", "/apertium/identifyLang"),
    key_parameter="key",
)
