"""Microsoft-compatible protocol: translation, languages, detection, sentence boundaries.

Bodies are an array of texts (version 3.0), or an object with inputs (version 2026-06-06)."""

import asyncio
from collections.abc import Mapping, Sequence

from babel import Locale, UnknownLocaleError
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from server.http.protocols.protocol import Protocol, SharedPaths
from server.http.requests.parameters import read_json
from server.http.requests.translation_call import translate_texts
from server.http.responses.errors import ErrorFormat
from server.http.responses.examples import answers
from server.http.state import server_state
from server.interface.errors import InvalidRequest, QuotaExceeded, TextTooLong
from server.text.language_detection import Detection
from server.text.language_tags import display_name, match_language
from server.text.segmentation.sentences import split
from server.text.unicode_text import replace_lone_surrogates
from server.translation.types import TextFormat, TranslationRequest

_CODES = {
    "unsupported_language_pair": 400019,
    "text_too_long": 400050,
    "missing_api_key": 401000,
    "quota_exceeded": 403001,
    "body_too_large": 400050,
}


def _body(status: int, code: str, message: str) -> dict[str, object]:
    default = 400000 if status == 422 else status * 1000
    return {"error": {"code": _CODES.get(code, default), "message": message}}


# The SDK waits as long as the `Retry-After` of a 429, which would be until the next day.
MICROSOFT = ErrorFormat("MicrosoftError", _body, {InvalidRequest: 400, TextTooLong: 400, QuotaExceeded: 403})

_CODE_OF_TAG = {"zh-Hans": "zh-Hans", "zh-Hant": "zh-Hant", "fil": "fil", "nb": "nb", "he": "he"}
_FORMATS: dict[str, TextFormat] = {"": "text", "plain": "text", "html": "html"}


def _code_of(tag: str) -> str:
    """Return Microsoft's code for a language of a model."""
    found = match_language(tag, list(_CODE_OF_TAG))
    return tag.replace("_", "-") if found is None else _CODE_OF_TAG[found]


def _texts_of(request: Request, body: object) -> list[str]:
    """Return the texts of an array of objects with `Text` or `text`.

    Raises `InvalidRequest`, also for too many texts, and `TextTooLong`.
    """
    if not isinstance(body, list):
        raise InvalidRequest("the body must be an array of objects with `Text`")
    texts = []
    for each in body:
        text = each.get("Text", each.get("text")) if isinstance(each, Mapping) else each
        if not isinstance(text, str):
            raise InvalidRequest("each element of the body must have a string `Text`")
        texts.append(replace_lone_surrogates(text))
    server_state(request).settings.limits.check_size(TranslationRequest(tuple(texts), "", ""))
    return texts


def _text_format_of(value: object) -> TextFormat:
    """Return the format that `textType` names. Raises `InvalidRequest` for others than plain and html."""
    found = _FORMATS.get(value.casefold()) if isinstance(value, str) else "text" if value is None else None
    if found is None:
        raise InvalidRequest("`textType` must be plain or html")
    return found


router = APIRouter(tags=["Microsoft-compatible"], responses=MICROSOFT.responses(400, 413, 429, 500, 503, 504))

_MAX_TARGETS = 20


_NAMES = ("translate", "detect", "languages", "breaksentence")
_CAN = {"isTranslationSupported": True, "isTransliterationSupported": False}
_ITEM = {
    "detectedLanguage": {"language": "en", "score": 0.9},
    "translations": [{"text": "Guten Morgen.", "to": "de", "language": "de"}],
}
_TRANSLATIONS = answers(
    "MicrosoftTranslations", [_ITEM], {"value": [_ITEM]}, optional=["detectedLanguage", "to", "language"]
)


_Group = tuple[str | None, str, str | None]
"""Source language, target language and format of texts that are translated together."""


@router.post("/microsoft/translate", responses=_TRANSLATIONS)
async def translate(request: Request) -> JSONResponse:
    """Translate texts into each language `to`. Answers also at `/translate`, recognised by `api-version`."""
    body = await read_json(request)
    if isinstance(body, Mapping):
        return JSONResponse({"value": await _translate_inputs(request, body)})
    texts, query = _texts_of(request, body), request.query_params
    targets = list(dict.fromkeys(query.getlist("to")))
    if not 1 <= len(targets) <= _MAX_TARGETS:
        raise InvalidRequest(f"`to` must name from 1 to {_MAX_TARGETS} languages. Given: {len(targets)}")
    groups: dict[_Group, list[tuple[int, int]]] = {
        (query.get("from") or None, target, query.get("textType")): [(index, place) for index in range(len(texts))]
        for place, target in enumerate(targets)
    }
    return JSONResponse(await _translated(request, texts, groups, "to"))


async def _translate_inputs(request: Request, body: Mapping[str, object]) -> list[dict[str, object]]:
    """Translate the inputs of version 2026-06-06. Inputs with equal languages are translated together."""
    inputs = body.get("inputs")
    if not isinstance(inputs, list):
        raise InvalidRequest("`inputs` must be an array of objects with `text` and `targets`")
    texts = _texts_of(request, inputs)
    groups: dict[_Group, list[tuple[int, int]]] = {}
    for index, each in enumerate(inputs):
        targets = each.get("targets") if isinstance(each, dict) else None
        if not isinstance(targets, list) or not 1 <= len(targets) <= _MAX_TARGETS:
            raise InvalidRequest(f"`targets` must be an array of 1 to {_MAX_TARGETS} objects with `language`")
        for place, target in enumerate(targets):
            language = _word(target, "language")
            if language is None:
                raise InvalidRequest("each element of `targets` must have a string `language`")
            group = (_word(each, "language"), language, _word(each, "textType"))
            groups.setdefault(group, []).append((index, place))
    if len(groups) > server_state(request).settings.max_texts:
        raise InvalidRequest(f"a request must have at most {server_state(request).settings.max_texts} combinations")
    return await _translated(request, texts, groups, "language")


async def _translated(
    request: Request, texts: Sequence[str], groups: Mapping[_Group, Sequence[tuple[int, int]]], field: str
) -> list[dict[str, object]]:
    """Return for each text its translations in their places, each with its target as `field`, and the language if it
    was detected. `groups` have indices and places."""
    translations: list[dict[int, object]] = [{} for _ in texts]
    detected: dict[int, dict[str, object]] = {}
    for (source, target, text_type), places in groups.items():
        sent = [texts[index] for index, _ in places]
        outcome = await translate_texts(request, sent, source, target, format=_text_format_of(text_type))
        for (index, place), translation in zip(places, outcome.result.translations, strict=True):
            translations[index][place] = {"text": translation.text, field: target}
        if outcome.detected:
            detected |= {index: _scored(each) for (index, _), each in zip(places, outcome.detected, strict=True)}
    return [
        ({"detectedLanguage": detected[index]} if index in detected else {})
        | {"translations": [placed[place] for place in sorted(placed)]}
        for index, placed in enumerate(translations)
    ]


def _word(fields: object, name: str) -> str | None:
    value = fields.get(name) if isinstance(fields, dict) else None
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"`{name}` must be a string")
    return None if value is None else replace_lone_surrogates(value)


def _scored(found: Detection | None) -> dict[str, object]:
    """Return a language and its score. Clients require a language; a text without letters counts as English."""
    if found is None:
        return {"language": "en", "score": 0}
    return {"language": _code_of(found.language), "score": round(found.confidence, 4)}


@router.get(
    "/microsoft/languages",
    responses=answers(
        "MicrosoftLanguages",
        {"translation": {"de": {"name": "German", "nativeName": "Deutsch", "dir": "ltr"}}},
        optional=["de"],
    ),
)
async def languages(request: Request) -> JSONResponse:
    """Return all languages. Answers also at `/languages`, recognised by `api-version`."""
    tags = server_state(request).accept()[1].languages
    return JSONResponse({"translation": {_code_of(tag): _language(tag) for tag in tags}})


@router.post("/microsoft/detect", responses=answers("MicrosoftDetections", [{"language": "en", "score": 0.9, **_CAN}]))
async def detect(request: Request) -> JSONResponse:
    """Return the most likely language of each text. Answers also at `/detect`, recognised by `api-version`."""
    texts = _texts_of(request, await read_json(request))
    service, _ = server_state(request).accept()
    found = await service.detect(TranslationRequest(tuple(texts), "", ""))
    return JSONResponse([_scored(each) | _CAN for each in found])


@router.post("/microsoft/breaksentence", responses=answers("MicrosoftSentences", [{"sentLen": [14, 11]}]))
async def break_sentences(request: Request) -> JSONResponse:
    """Return the lengths of the sentences of each text, in UTF-16 code units, with the blanks behind them.

    Answers also at `/breaksentence`.
    """
    texts = _texts_of(request, await read_json(request))
    service, model_router = server_state(request).accept()
    found = await service.detect(TranslationRequest(tuple(texts), "", ""))
    named = match_language(request.query_params.get("language", ""), model_router.source_languages)
    sources = [named or ("en" if each is None else each.language) for each in found]
    pairs = zip(texts, sources, strict=True)
    return JSONResponse(await asyncio.to_thread(lambda: [{"sentLen": _lengths(*pair)} for pair in pairs]))


def _lengths(text: str, language: str) -> list[int]:
    segments = split(text, language, lambda _: True)
    parts = (segment.before + segment.text + segment.after for segment in segments)
    return [len(part.encode("utf-16-le", "surrogatepass")) // 2 for part in parts if part]


def _language(tag: str) -> dict[str, str]:
    try:
        direction = Locale.parse(tag.replace("-", "_")).text_direction
    except (ValueError, UnknownLocaleError):
        direction = "ltr"
    return {"name": display_name(tag), "nativeName": display_name(tag, tag), "dir": direction}


MICROSOFT_PROTOCOL = Protocol(
    name="microsoft",
    routers=(router,),
    error_format=MICROSOFT,
    paths=("/microsoft/", "/translator/text/v3.0/"),
    shared=(
        SharedPaths(
            "/microsoft",
            tuple(f"/{name}" for name in _NAMES),
            lambda fields: "api-version" in fields.query,
        ),
    ),
    aliases={f"/translator/text/v3.0/{name}": f"/microsoft/{name}" for name in _NAMES},
    open_paths=("/microsoft/languages",),
    engine_free_paths=("/microsoft/detect", "/microsoft/breaksentence"),
    key_queries=("Subscription-Key",),
    key_headers=("ocp-apim-subscription-key",),
)
