"""Google-compatible protocol: Cloud Translation Basic (v2), and the web page, which free clients use."""

import json
from html import escape

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from server.http.protocols.protocol import Protocol
from server.http.requests.admission import check_admission
from server.http.requests.parameters import Parameters, body_of, read_parameters
from server.http.requests.translation_call import check_language, source_codes, translate_texts
from server.http.responses.errors import ErrorFormat
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


class GoogleCause(BaseModel):
    """One cause of an error."""

    message: str
    domain: str
    reason: str


class GoogleDetails(BaseModel):
    """An error; `code` is the HTTP status."""

    code: int
    message: str
    errors: list[GoogleCause]
    status: str


class GoogleError(BaseModel):
    """Body of an error response."""

    error: GoogleDetails


def _body(status: int, _: str, message: str) -> dict[str, object]:
    name, reason = _STATUSES.get(status, ("INTERNAL", "internalError"))
    causes = [{"message": message, "domain": "global", "reason": reason}]
    return {"error": {"code": status, "message": message, "errors": causes, "status": name}}


GOOGLE = ErrorFormat(
    _body, GoogleError, {InvalidRequest: 400, TextTooLong: 413, MissingApiKey: 403, InvalidApiKey: 400}
)
google_responses = GOOGLE.responses


_CODE_OF_TAG = {"zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "he": "iw", "jv": "jw", "fil": "tl", "nb": "no"}


def google_code(tag: str) -> str:
    """Return Google's code for a language of a model."""
    found = match_language(tag, list(_CODE_OF_TAG))
    return tag.replace("_", "-") if found is None else _CODE_OF_TAG[found]


PATH = "/language/translate/v2"

router = APIRouter(
    tags=["Google-compatible"],
    responses=google_responses(400, 413, 429, 500, 503, 504),
)

_FORMATS: dict[str, TextFormat] = {"": "html", "html": "html", "text": "text"}
_NO_LANGUAGE = "und"
_ADMITTED = [Depends(check_admission)]


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


class GoogleTranslation(BaseModel):
    """Translation of one text; the language is present if it was detected."""

    translatedText: str  # noqa: N815 - the protocol's names
    detectedSourceLanguage: str | None = None  # noqa: N815


class Translations(BaseModel):
    """The translations in the order of the texts."""

    translations: list[GoogleTranslation]


class CloudTranslateAnswer(BaseModel):
    """Envelope of the translations."""

    data: Translations


class GoogleDetection(BaseModel):
    """The most likely language of a text."""

    language: str
    confidence: float
    isReliable: bool = False  # noqa: N815


class Detections(BaseModel):
    """A list with one language for each text."""

    detections: list[list[GoogleDetection]]


class GoogleDetections(BaseModel):
    """Envelope of the detections."""

    data: Detections


class GoogleLanguage(BaseModel):
    """A language; the name is present if `target` names the language of names."""

    language: str
    name: str | None = None


class GoogleLanguageList(BaseModel):
    """All languages."""

    languages: list[GoogleLanguage]


class GoogleLanguages(BaseModel):
    """Envelope of the languages."""

    data: GoogleLanguageList


@router.get(PATH, response_model_exclude_none=True, dependencies=_ADMITTED)
@router.get(f"{PATH}/", include_in_schema=False, response_model_exclude_none=True, dependencies=_ADMITTED)
@router.post(f"{PATH}/", include_in_schema=False, response_model_exclude_none=True, dependencies=_ADMITTED)
@router.post(
    PATH,
    response_model_exclude_none=True,
    dependencies=_ADMITTED,
    openapi_extra=body_of(TranslateFields),
)
async def translate(request: Request) -> CloudTranslateAnswer:
    """Translate texts. Without `format` they are HTML, as in Google's service."""
    sent = await read_parameters(request)
    texts = _texts(sent)
    text_format = _FORMATS.get((_field(request, sent, "format") or "").casefold())
    if text_format is None:
        raise InvalidRequest("`format` must be html or text")
    source, target = _field(request, sent, "source"), _field(request, sent, "target")
    outcome = await translate_texts(request, texts, source, target, format=text_format)
    codes = source_codes(outcome, source) if outcome.detected else [None] * len(texts)
    return CloudTranslateAnswer(
        data=Translations(
            translations=[
                GoogleTranslation(
                    translatedText=translation.text, detectedSourceLanguage=None if code is None else google_code(code)
                )
                for translation, code in zip(outcome.result.translations, codes, strict=True)
            ]
        )
    )


@router.get(f"{PATH}/detect")
@router.get(f"{PATH}/detect/", include_in_schema=False)
@router.post(f"{PATH}/detect/", include_in_schema=False)
@router.post(f"{PATH}/detect", openapi_extra=body_of(DetectFields))
async def detect(request: Request) -> GoogleDetections:
    """Return the most likely language of each text."""
    sent = await read_parameters(request)
    texts = TranslationRequest(tuple(_texts(sent)), "", "")
    server = server_state(request)
    server.settings.limits.check_size(texts)
    service, _ = server.accept()
    detections = [
        GoogleDetection(language=_NO_LANGUAGE, confidence=0)
        if each is None
        else GoogleDetection(language=google_code(each.language), confidence=round(each.confidence, 4))
        for each in await service.detect(texts)
    ]
    return GoogleDetections(data=Detections(detections=[[each] for each in detections]))


@router.get(f"{PATH}/languages", response_model_exclude_none=True)
@router.get(f"{PATH}/languages/", include_in_schema=False, response_model_exclude_none=True)
@router.post(f"{PATH}/languages/", include_in_schema=False, response_model_exclude_none=True)
@router.post(f"{PATH}/languages", include_in_schema=False, response_model_exclude_none=True)
async def languages(request: Request) -> GoogleLanguages:
    """Return all languages, with names if `target` names the language of names."""
    locale = _field(request, await read_parameters(request), "target")
    check_language(locale or "", "target language")
    _, model_router = server_state(request).accept()
    tags = sorted({*model_router.source_languages, *model_router.target_languages})
    return GoogleLanguages(
        data=GoogleLanguageList(
            languages=[
                GoogleLanguage(language=google_code(tag), name=display_name(tag, locale) if locale else None)
                for tag in tags
            ]
        )
    )


def _field(request: Request, sent: Parameters, name: str) -> str | None:
    """Return a field of the body or of the query, which some clients use beside a JSON body. None means detection."""
    value = sent.text(name)
    if value is None and sent.is_json:
        value = request.query_params.get(name)
    return None if means_detection(value) else value


def _texts(sent: Parameters) -> list[str]:
    texts = sent.texts("q")
    if not texts:
        raise InvalidRequest("Required Text: `q` is missing")
    return texts


web_router = APIRouter(
    prefix="/translate_a",
    tags=["Google-compatible"],
    dependencies=[Depends(check_admission)],
    responses=google_responses(400, 413, 429, 500, 503, 504),
)

_BACKEND = 10  # in real answers a number of the model; clients ignore it


@web_router.get("/single")
@web_router.post("/single")
async def single(request: Request) -> JSONResponse:
    """Translate one text `q` from `sl` to `tl`, as an array, or as an object with `dj=1`."""
    sent = await read_parameters(request)
    text = sent.text("q")
    if text is None:
        raise InvalidRequest("`q` is missing")
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


@web_router.get("/t")
@web_router.post("/t")
async def several(request: Request) -> JSONResponse:
    """Translate the texts `q`. The answer is a list of translations, each with its language if `sl` is auto."""
    sent = await read_parameters(request)
    texts = sent.texts("q")
    if not texts:
        raise InvalidRequest("`q` is missing")
    source = sent.text("sl")
    text_format = sent.text("format") or "text"
    if text_format not in ("text", "html"):
        raise InvalidRequest("`format` must be text or html")
    outcome = await translate_texts(
        request, texts, source, sent.text("tl"), format="html" if text_format == "html" else "text"
    )
    translated = [translation.text for translation in outcome.result.translations]
    if source is None or not means_detection(source):
        return JSONResponse(translated)
    codes = [google_code(code) for code in source_codes(outcome, None)]
    return JSONResponse([[text, code] for text, code in zip(translated, codes, strict=True)])


def _pieces(text: str, translated: str) -> list[tuple[str, str]]:
    """Return translations beside their sources, line by line. All but the last end with their line break."""
    new, old = translated.splitlines(keepends=True), text.splitlines(keepends=True)
    return list(zip(new, old, strict=True)) if len(new) == len(old) else [(translated, text)]


pages_router = APIRouter(
    tags=["Google-compatible"],
    responses=google_responses(400, 413, 429, 500, 503, 504),
)

PAGE_PATH = "/google"
MOBILE_PATH = "/m"
BATCH_PATH = "/_/TranslateWebserverUi/data/batchexecute"
_TRANSLATE = "MkEWBc"  # name of the call that translates
_MAX_CALLS = 128
_HTML: dict[int | str, dict[str, object]] = {200: {"content": {"text/html": {}}}}
_TEXT: dict[int | str, dict[str, object]] = {200: {"content": {"text/plain": {}}}}
_PREFIX = ")]}'\n\n"  # before JSON, so that a page cannot load it as a script


@pages_router.get(PAGE_PATH, responses=_HTML)
async def start_page(request: Request) -> HTMLResponse:
    """Return the languages and the session as a page has them; `translators` reads both."""
    _, model_router = server_state(request).accept()
    tags = sorted({*model_router.source_languages, *model_router.target_languages})
    items = "".join(f'<li data-language-code="{escape(google_code(tag))}"></li>' for tag in tags)
    session = '<script>window.WIZ_global_data = {"cfb2h":"kvasir","FdrFJe":"0"};</script>'
    return HTMLResponse(f"<!doctype html><title>Kvasir</title>{session}<ul>{items}</ul>")


@pages_router.get(MOBILE_PATH, responses=_HTML, dependencies=[Depends(check_admission)])
async def mobile_page(request: Request) -> HTMLResponse:
    """Translate the text `q` from `sl` to `tl`, into a page with the translation as its result."""
    sent = await read_parameters(request)
    text = sent.text("q")
    if text is None:
        raise InvalidRequest("`q` is missing")
    outcome = await translate_texts(request, [text], sent.text("sl"), sent.text("tl"))
    result = escape(outcome.result.translations[0].text)
    return HTMLResponse(f'<!doctype html><title>Kvasir</title><div class="result-container">{result}</div>')


@pages_router.post(BATCH_PATH, responses=_TEXT)
@pages_router.post(PAGE_PATH + BATCH_PATH, responses=_TEXT)
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
    routers=(router, web_router, pages_router),
    error_format=GOOGLE,
    paths=(
        PATH,
        f"{PATH}/",
        "/translate_a/",
        PAGE_PATH,
        MOBILE_PATH,
        BATCH_PATH,
        f"{PAGE_PATH}{BATCH_PATH}",
    ),
    engine_free_paths=(
        f"{PATH}/detect",
        f"{PATH}/detect/",
        f"{PATH}/languages",
        f"{PATH}/languages/",
        PAGE_PATH,
    ),
    key_parameter="key",
    key_headers=("x-goog-api-key",),
)
