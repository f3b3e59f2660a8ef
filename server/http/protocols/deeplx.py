"""DeepLX-compatible protocol: one text, in DeepLX's own form and in the JSON-RPC form of DeepL's page."""

import time
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, BeforeValidator, FailFast, Field

from server.http.protocols.protocol import Protocol, SharedPaths
from server.http.requests.parameters import body_of, read_parameters
from server.http.requests.translation_call import source_codes, translate_texts
from server.http.responses.errors import ErrorFormat
from server.interface.errors import InvalidRequest, NotFound, TextTooLong, UnsupportedPair
from server.text.unicode_text import replace_lone_surrogates
from server.translation.types import TextFormat


class DeepLXError(BaseModel):
    """Body of an error response. `code` is the status; `data` is empty, for clients that read it in any answer."""

    code: int
    message: str
    data: str = ""


DEEPLX = ErrorFormat(
    lambda status, _, message: {"code": status, "message": message, "data": ""},
    DeepLXError,
    {InvalidRequest: 400, UnsupportedPair: 406, TextTooLong: 413},
)
deeplx_responses = DEEPLX.responses


router = APIRouter(prefix="/deeplx", tags=["DeepLX-compatible"])

_FORMATS: Mapping[str, TextFormat] = {"": "text", "html": "html", "xml": "xml"}


class TranslateFields(BaseModel):
    """One text and its languages."""

    text: str
    target_lang: str
    source_lang: str = Field("auto", description="auto or empty: detected")
    tag_handling: str = Field("", description="html or xml: tags are kept")


class DeepLXAnswer(BaseModel):
    """The translation as `data`. `alternatives` is empty: some clients prefer its first entry to `data`."""

    code: int = 200
    id: int
    data: str
    alternatives: list[str] = []
    source_lang: str
    target_lang: str
    method: str = "Free"


@router.post("", include_in_schema=False)
@router.post("/v1/translate", include_in_schema=False)
@router.post(
    "/translate",
    openapi_extra=body_of(TranslateFields),
    responses=deeplx_responses(400, 404, 406, 413, 429, 500, 503, 504),
)
async def translate(request: Request) -> DeepLXAnswer:
    """Translate one text. Answers also at `/translate` and `/v1/translate`, recognised by `target_lang`."""
    sent = await read_parameters(request)
    if sent.is_list("text"):
        raise InvalidRequest("`text` must be one string; /v2/translate accepts a list")
    text = sent.text("text")
    if not text:
        raise NotFound("No text to translate")
    source, target = sent.text("source_lang"), sent.text("target_lang")
    text_format = _FORMATS.get((sent.text("tag_handling") or "").casefold())
    if text_format is None:
        raise InvalidRequest("`tag_handling` must be html or xml")
    outcome = await translate_texts(request, [text], source, target, format=text_format)
    detected = source_codes(outcome, source)[0]
    return DeepLXAnswer(
        id=time.time_ns() // 1_000_000,
        data=outcome.result.translations[0].text,
        source_lang=detected.upper() if outcome.detected else detected,
        target_lang=target or "",
    )


Text = Annotated[
    str, BeforeValidator(lambda value: replace_lone_surrogates(value) if isinstance(value, str) else value)
]


class RpcText(BaseModel):
    """A text of a call."""

    text: Text


class RpcLanguages(BaseModel):
    """Languages of a call."""

    source_lang_user_selected: str | None = None
    target_lang: str


class RpcParams(BaseModel):
    """Texts and languages of a call."""

    texts: Annotated[list[RpcText], FailFast()]  # a description of each wrong text would hold the event loop
    lang: RpcLanguages


class RpcCall(BaseModel):
    """A call of `LMT_handle_texts`, as DeepL's page sends it."""

    id: int | None = None
    method: str = "LMT_handle_texts"
    params: RpcParams


class RpcResult(BaseModel):
    """The translations in the order of the texts."""

    texts: list[RpcText]
    lang: str


class RpcAnswer(BaseModel):
    """Answer to a call, with its id."""

    jsonrpc: str = "2.0"
    id: int | None
    result: RpcResult


@router.post(
    "/jsonrpc",
    responses=deeplx_responses(400, 406, 413, 429, 500, 503, 504),
)
async def call(request: Request, body: RpcCall) -> RpcAnswer:
    """Translate texts in the form of DeepL's page, for clients with a settable address."""
    source = body.params.lang.source_lang_user_selected
    texts = [each.text for each in body.params.texts]
    outcome = await translate_texts(request, texts, source, body.params.lang.target_lang)
    translations = [RpcText(text=each.text) for each in outcome.result.translations]
    languages = source_codes(outcome, source) or [source or "EN"]
    return RpcAnswer(id=body.id, result=RpcResult(texts=translations, lang=languages[0].upper()))


DEEPLX_PROTOCOL = Protocol(
    name="deeplx",
    routers=(router,),
    error_format=DEEPLX,
    paths=("/deeplx", "/deeplx/"),
    shared=(SharedPaths("/deeplx", ("/translate", "/v1/translate"), lambda fields: fields.has("text", "target_lang")),),
    key_queries=("token",),
)
