"""MTranServer-compatible protocol: texts, detection, and the version of the server."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

from server.http.protocols.protocol import Protocol, SharedPaths
from server.http.requests.parameters import Parameters, body_of, read_parameters
from server.http.requests.translation_call import translate_texts
from server.http.responses.errors import ErrorFormat
from server.http.responses.examples import answers
from server.http.state import server_state
from server.interface.errors import InvalidRequest, TextTooLong
from server.operations.version import version
from server.translation.types import TextFormat

MTRANSERVER = ErrorFormat(
    "MTranServerError", lambda _, __, message: {"error": message}, {InvalidRequest: 400, TextTooLong: 413}
)

router = APIRouter(
    prefix="/mtranserver",
    tags=["MTranServer-compatible"],
    responses=MTRANSERVER.responses(400, 413, 429, 500, 503, 504),
)

_COUNTRIES = {"jp": "ja", "kr": "ko"}  # this protocol accepts them as languages


class TextFields(BaseModel):
    """A text and its languages."""

    source: str = Field(alias="from", description="auto: detected")
    target: str = Field(alias="to")
    text: str
    html: bool = False


class BatchFields(BaseModel):
    """Texts and their languages."""

    source: str = Field(alias="from", description="auto: detected for each text")
    target: str = Field(alias="to")
    texts: list[str]
    html: bool = False


class DetectFields(BaseModel):
    """A text whose language is to be detected."""

    text: str
    min_confidence: float | None = Field(None, alias="minConfidence")


@router.post(
    "/translate", openapi_extra=body_of(TextFields), responses=answers("MTranServerText", {"result": "Guten Morgen."})
)
async def translate(request: Request) -> JSONResponse:
    """Translate one text. Answers also at `/translate`, recognised by `from`, `to` and `text`."""
    sent = await read_parameters(request)
    if sent.is_list("text"):
        raise InvalidRequest("`text` must be one string; /translate/batch accepts a list")
    [result] = await _translate(request, sent, [sent.required_text("text")])
    return JSONResponse({"result": result})


@router.post(
    "/translate/batch",
    openapi_extra=body_of(BatchFields),
    responses=answers("MTranServerTexts", {"results": ["Guten Morgen."]}),
)
async def translate_batch(request: Request) -> JSONResponse:
    """Translate texts together. Answers also at `/translate/batch`."""
    sent = await read_parameters(request)
    if not sent.is_list("texts"):
        raise InvalidRequest("`texts` must be a list of strings")
    return JSONResponse({"results": await _translate(request, sent, sent.texts("texts"))})


@router.post(
    "/detect",
    openapi_extra=body_of(DetectFields),
    responses=answers("MTranServerDetection", {"language": "en", "confidence": 0.9}),
)
async def detect(request: Request) -> JSONResponse:
    """Return the language of a text, empty if none is likely enough.

    Answers also at `/detect`, recognised by `text`.
    """
    sent = await read_parameters(request)
    text = sent.required_text("text")
    try:
        minimum = sent.number("minConfidence") or 0.0
    except ValueError as error:
        raise InvalidRequest("`minConfidence` must be a number") from error
    service, _ = server_state(request).accept()
    [ranked] = await service.rank((text,))
    if not ranked or ranked[0].confidence < minimum:
        return JSONResponse({"language": "", "confidence": 0})
    return JSONResponse({"language": ranked[0].language, "confidence": round(ranked[0].confidence, 4)})


async def _translate(request: Request, sent: Parameters, texts: list[str]) -> list[str]:
    try:
        text_format: TextFormat = "html" if sent.flag("html") else "text"
    except ValueError as error:
        raise InvalidRequest("`html` must be true or false") from error
    source, target = sent.text("from") or "", sent.text("to") or ""
    source, target = (_COUNTRIES.get(code.strip().casefold(), code) for code in (source, target))
    outcome = await translate_texts(request, texts, source, target, format=text_format)
    return [translation.text for translation in outcome.result.translations]


service_router = APIRouter(tags=["MTranServer-compatible"])

_SERVICE_PATHS = ("/version", "/__heartbeat__", "/__lbheartbeat__")


@service_router.get("/version", responses=answers("Version", {"version": "1.2.3"}))
async def server_version() -> JSONResponse:
    """Return the version of this server."""
    return JSONResponse({"version": version()})


@service_router.get("/__heartbeat__", response_class=PlainTextResponse)
@service_router.get("/__lbheartbeat__", response_class=PlainTextResponse)
async def heartbeat() -> PlainTextResponse:
    """Return that the server is up; /health/ready is more precise."""
    return PlainTextResponse("Ready")


MTRANSERVER_PROTOCOL = Protocol(
    name="mtranserver",
    routers=(router, service_router),
    error_format=MTRANSERVER,
    paths=("/mtranserver/", *_SERVICE_PATHS),
    shared=(
        SharedPaths(
            "/mtranserver",
            ("/translate",),
            lambda fields: fields.method == "POST" and fields.has("text", "from", "to"),
        ),
        SharedPaths("/mtranserver", ("/translate/batch",), lambda _: True),
        SharedPaths("/mtranserver", ("/detect",), lambda fields: fields.has("text") and not fields.has("q")),
    ),
    # Its addresses for other protocols: its users change the host only.
    aliases={
        "/deepl": "/v2/translate",
        "/google/language/translate/v2": "/language/translate/v2",
        "/google/translate_a/single": "/translate_a/single",
    },
    open_paths=_SERVICE_PATHS,
    engine_free_paths=("/mtranserver/detect",),
    key_queries=("token", "api_token"),
    key_headers=("authorization", "x-api-token"),  # some clients send the token without "Bearer"
)
