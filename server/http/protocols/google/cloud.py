"""Google-compatible routes of Cloud Translation Basic (v2)."""

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from server.http.protocols.google.codes import google_code
from server.http.protocols.google.errors import google_responses
from server.http.requests.admission import check_admission
from server.http.requests.compatible_translation import check_language, source_codes, translate_texts
from server.http.requests.openapi_bodies import body_of
from server.http.requests.parameters import Parameters, closes_forms, read_parameters
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.language_tags import display_name, means_detection
from server.translation.types import TextFormat, TranslationRequest

PATH = "/language/translate/v2"

router = APIRouter(
    tags=["Google-compatible"],
    dependencies=[Depends(closes_forms)],
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
    sent = await _read(request)
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
    sent = await _read(request)
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
    locale = _field(request, await _read(request), "target")
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


async def _read(request: Request) -> Parameters:
    return await read_parameters(request, server_state(request).settings.max_texts + 50)


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
