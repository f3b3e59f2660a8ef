"""Google-compatible protocol: Cloud Translation Basic (v2), and the web page, which free clients use."""

import json
from html import escape

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from server.http.protocols.protocol import Protocol
from server.http.requests.parameters import Parameters, body_of, read_parameters
from server.http.requests.translation_call import check_language, source_codes, translate_texts
from server.http.responses.errors import ErrorFormat
from server.http.responses.examples import answers
from server.http.state import server_state
from server.interface.errors import InvalidApiKey, InvalidRequest, MissingApiKey, TextTooLong
from server.text.language_tags import display_name, match_language, means_detection
from server.translation.types import TextFormat, TranslationRequest

_STATUSES = {
    400: ("INVALID_ARGUMENT", "invalid"),
    401: ("UNAUTHENTICATED", "authError"),
    403: ("PERMISSION_DENIED", "forbidden"),
    404: ("NOT_FOUND", "notFound"),
    405: ("UNIMPLEMENTED", "methodNotAllowed"),
    413: ("INVALID_ARGUMENT", "uploadTooLarge"),
    429: ("RESOURCE_EXHAUSTED", "rateLimitExceeded"),
    503: ("UNAVAILABLE", "backendError"),
    504: ("DEADLINE_EXCEEDED", "backendError"),
}


def _body(status: int, _: str, message: str) -> dict[str, object]:
    name, reason = _STATUSES.get(status, ("INTERNAL", "internalError"))
    causes = [{"message": message, "domain": "global", "reason": reason}]
    return {"error": {"code": status, "message": message, "errors": causes, "status": name}}


GOOGLE = ErrorFormat(
    "GoogleError", _body, {InvalidRequest: 400, TextTooLong: 413, MissingApiKey: 403, InvalidApiKey: 400}
)

_CODE_OF_TAG = {"zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "he": "iw", "jv": "jw", "fil": "tl", "nb": "no"}


def google_code(tag: str) -> str:
    """Return Google's code for a language of a model."""
    found = match_language(tag, list(_CODE_OF_TAG))
    return tag.replace("_", "-") if found is None else _CODE_OF_TAG[found]


PATH = "/language/translate/v2"
PAGE_PATH = "/google"
MOBILE_PATH = "/m"
BATCH_PATH = "/_/TranslateWebserverUi/data/batchexecute"

router = APIRouter(tags=["Google-compatible"], responses=GOOGLE.responses(400, 413, 429, 500, 503, 504))

_FORMATS: dict[str, TextFormat] = {"": "html", "html": "html", "text": "text"}
_NO_LANGUAGE = "und"


class TranslateFields(BaseModel):
    """Texts and their languages, in the query, a form or JSON."""

    q: str | list[str]
    target: str
    source: str | None = Field(None, description="missing: detected for each text")
    format: str = Field("html", description="html or text")
    model: str | None = Field(None, description="ignored")


class DetectFields(BaseModel):
    """Texts whose languages are to be detected."""

    q: str | list[str]


_TRANSLATIONS = answers(
    "CloudTranslateAnswer",
    {"data": {"translations": [{"translatedText": "Guten Morgen.", "detectedSourceLanguage": "en"}]}},
    optional=["detectedSourceLanguage"],
)
_DETECTIONS = answers(
    "GoogleDetections", {"data": {"detections": [[{"language": "en", "confidence": 0.9, "isReliable": False}]]}}
)
_LANGUAGES = answers(
    "GoogleLanguages", {"data": {"languages": [{"language": "de", "name": "German"}]}}, optional=["name"]
)


@router.get(PATH, responses=_TRANSLATIONS)
@router.post(PATH, responses=_TRANSLATIONS, openapi_extra=body_of(TranslateFields))
async def translate(request: Request) -> JSONResponse:
    """Translate texts. Without `format` they are HTML, as in Google's service."""
    sent = await read_parameters(request)
    texts = _texts(sent)
    text_format = _FORMATS.get((_field(request, sent, "format") or "").casefold())
    if text_format is None:
        raise InvalidRequest("`format` must be html or text")
    source, target = _field(request, sent, "source"), _field(request, sent, "target")
    outcome = await translate_texts(request, texts, source, target, format=text_format)
    translations = [{"translatedText": each.text} for each in outcome.result.translations]
    if outcome.detected:
        for translation, code in zip(translations, source_codes(outcome, source), strict=True):
            translation["detectedSourceLanguage"] = google_code(code)
    return JSONResponse({"data": {"translations": translations}})


@router.get(f"{PATH}/detect", responses=_DETECTIONS)
@router.post(f"{PATH}/detect", responses=_DETECTIONS, openapi_extra=body_of(DetectFields))
async def detect(request: Request) -> JSONResponse:
    """Return the most likely language of each text."""
    sent = await read_parameters(request)
    texts = TranslationRequest(tuple(_texts(sent)), "", "")
    server = server_state(request)
    server.settings.limits.check_size(texts)
    service, _ = server.accept()
    found = [
        (_NO_LANGUAGE, 0) if each is None else (google_code(each.language), round(each.confidence, 4))
        for each in await service.detect(texts)
    ]
    detections = [[{"language": code, "confidence": confidence, "isReliable": False}] for code, confidence in found]
    return JSONResponse({"data": {"detections": detections}})


@router.get(f"{PATH}/languages", responses=_LANGUAGES)
@router.post(f"{PATH}/languages", include_in_schema=False)
async def languages(request: Request) -> JSONResponse:
    """Return all languages, with names if `target` names the language of names."""
    locale = _field(request, await read_parameters(request), "target")
    check_language(locale or "", "target language")
    tags = server_state(request).accept()[1].languages
    named = [{"language": google_code(tag), **({"name": display_name(tag, locale)} if locale else {})} for tag in tags]
    return JSONResponse({"data": {"languages": named}})


def _field(request: Request, sent: Parameters, name: str) -> str | None:
    """Return a field of the body or of the query, which some clients add to a JSON body. None means detection."""
    value = sent.text(name)
    if value is None and sent.is_json:
        value = request.query_params.get(name)
    return None if means_detection(value) else value


def _texts(sent: Parameters) -> list[str]:
    texts = sent.texts("q")
    if not texts:
        raise InvalidRequest("Required Text: `q` is missing")
    return texts


_BACKEND = 10  # in real answers a number of the model; clients ignore it


@router.get("/translate_a/single")
@router.post("/translate_a/single")
async def single(request: Request) -> JSONResponse:
    """Translate one text `q` from `sl` to `tl`, as an array, or as an object with `dj=1`."""
    sent = await read_parameters(request)
    text = sent.required_text("q")
    outcome = await translate_texts(request, [text], sent.text("sl"), sent.text("tl"))
    pieces = _pieces(text, outcome.result.translations[0].text)
    source = google_code(source_codes(outcome, sent.text("sl"))[0]) if outcome.detected else sent.text("sl")
    detection = outcome.detected[0] if outcome.detected else None
    confidence = 1 if detection is None else round(detection.confidence, 4)
    if sent.word("dj") == "1":
        return JSONResponse(
            {
                "sentences": [{"trans": new, "orig": old, "backend": _BACKEND} for new, old in pieces],
                "src": source,
                "confidence": confidence,
                "spell": {},
                "ld_result": {
                    "srclangs": [source],
                    "srclangs_confidences": [confidence],
                    "extended_srclangs": [source],
                },
            }
        )
    # Some clients take any second element for a dictionary.
    sentences = [[new, old, None, None, _BACKEND] for new, old in pieces]
    languages = [[source], None, [confidence], [source]]
    return JSONResponse([sentences, None, source, None, None, None, confidence, [], languages])


@router.get("/translate_a/t")
@router.post("/translate_a/t")
async def several(request: Request) -> JSONResponse:
    """Translate the texts `q`. The answer is a list of translations, each with its language if `sl` is auto."""
    sent = await read_parameters(request)
    texts = sent.texts("q")
    if not texts:
        raise InvalidRequest("`q` is missing")
    source = sent.text("sl")
    text_format = sent.choice("format", _FORMATS | {"": "text"})
    outcome = await translate_texts(request, texts, source, sent.text("tl"), format=text_format)
    translated = [translation.text for translation in outcome.result.translations]
    if source is None or not means_detection(source):
        return JSONResponse(translated)
    codes = [google_code(code) for code in source_codes(outcome, None)]
    return JSONResponse([[text, code] for text, code in zip(translated, codes, strict=True)])


def _pieces(text: str, translated: str) -> list[tuple[str, str]]:
    """Return translations with their sources, line by line. All but the last end with their line break."""
    new, old = translated.splitlines(keepends=True), text.splitlines(keepends=True)
    return list(zip(new, old, strict=True)) if len(new) == len(old) else [(translated, text)]


_TRANSLATE = "MkEWBc"  # name of the call that translates
_MAX_CALLS = 128
_HTML: dict[int | str, dict[str, object]] = {200: {"content": {"text/html": {}}}}
_TEXT: dict[int | str, dict[str, object]] = {200: {"content": {"text/plain": {}}}}
_PREFIX = ")]}'\n\n"  # before JSON, so that a page cannot load it as a script


@router.get(PAGE_PATH, responses=_HTML)
async def start_page(request: Request) -> HTMLResponse:
    """Return the languages and the session as a page has them; `translators` reads both."""
    tags = server_state(request).accept()[1].languages
    items = "".join(f'<li data-language-code="{escape(google_code(tag))}"></li>' for tag in tags)
    session = '<script>window.WIZ_global_data = {"cfb2h":"kvasir","FdrFJe":"0"};</script>'
    return HTMLResponse(f"<!doctype html><title>Kvasir</title>{session}<ul>{items}</ul>")


@router.get(MOBILE_PATH, responses=_HTML)
async def mobile_page(request: Request) -> HTMLResponse:
    """Translate the text `q` from `sl` to `tl`, into a page with the translation as its result."""
    sent = await read_parameters(request)
    text = sent.required_text("q")
    outcome = await translate_texts(request, [text], sent.text("sl"), sent.text("tl"))
    result = escape(outcome.result.translations[0].text)
    return HTMLResponse(f'<!doctype html><title>Kvasir</title><div class="result-container">{result}</div>')


@router.post(BATCH_PATH, responses=_TEXT)
@router.post(PAGE_PATH + BATCH_PATH, responses=_TEXT)
async def batch(request: Request) -> PlainTextResponse:
    """Translate the texts of the calls in `f.req`. With `rt=c` each answer follows a line with its length."""
    sent = await read_parameters(request)
    calls = _batch_calls(sent.text("f.req"))
    answers: dict[int, str] = {}
    for pair in dict.fromkeys((source, target) for _, source, target, _ in calls):
        indices = [index for index, call in enumerate(calls) if call[1:3] == pair]
        source, target = pair
        outcome = await translate_texts(request, [calls[index][0] for index in indices], source, target)
        codes = [google_code(code) for code in source_codes(outcome, None if means_detection(source) else source)]
        for index, translation, code in zip(indices, outcome.result.translations, codes, strict=True):
            answers[index] = _batch_answer(translation.text, source, target, code)
    parts = [["wrb.fr", _TRANSLATE, answers[index], None, None, None, calls[index][3]] for index in range(len(calls))]
    if sent.text("rt") == "c":
        lines = [json.dumps([part], ensure_ascii=False) for part in parts]
        return PlainTextResponse(_PREFIX + "".join(f"{len(line) + 2}\n{line}\n" for line in lines))
    return PlainTextResponse(_PREFIX + json.dumps(parts, ensure_ascii=False))


def _batch_answer(text: str, source: str, target: str, detected: str) -> str:
    """Return the JSON text of one answer; clients read the sentences, the named and the detected language."""
    sentence = [None, None, None, None, None, [[text]]]
    return json.dumps([[None, None, detected], [[sentence], target, 1, source], detected], ensure_ascii=False)


def _batch_calls(content: str | None) -> list[tuple[str, str, str, str]]:
    """Return text, source, target and id of each call. Raises `InvalidRequest` unless all translate."""
    try:
        [calls] = json.loads(content or "")
        parsed = [(name, json.loads(arguments)[0], identifier) for name, arguments, _, identifier in calls]
        found = [
            (str(text), str(source), str(target), str(identifier))
            for name, (text, source, target, *_), identifier in parsed
            if name == _TRANSLATE
        ]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        raise InvalidRequest(f"`f.req` must be a list of calls of {_TRANSLATE}") from error
    if not found or len(found) != len(parsed):
        raise InvalidRequest(f"`f.req` must be a list of calls of {_TRANSLATE}")
    if len(found) > _MAX_CALLS:
        raise InvalidRequest(f"`f.req` must have at most {_MAX_CALLS} calls. Given: {len(found)}")
    return found


GOOGLE_PROTOCOL = Protocol(
    name="google",
    routers=(router,),
    error_format=GOOGLE,
    paths=(PATH, f"{PATH}/", "/translate_a/", PAGE_PATH, MOBILE_PATH, BATCH_PATH, f"{PAGE_PATH}{BATCH_PATH}"),
    aliases={f"{path}/": path for path in (PATH, f"{PATH}/detect", f"{PATH}/languages")},
    engine_free_paths=(f"{PATH}/detect", f"{PATH}/languages", PAGE_PATH),
    key_parameter="key",
    key_headers=("x-goog-api-key",),
)
