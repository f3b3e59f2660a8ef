"""DeepLX-compatible protocol: one text, in DeepLX's own form and in the JSON-RPC form of DeepL's page."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, BeforeValidator, FailFast, Field

from server.http.protocols.protocol import Protocol, SharedPaths
from server.http.requests.parameters import body_of, read_parameters
from server.http.requests.translation_call import source_codes, translate_texts
from server.http.responses.errors import ErrorFormat
from server.http.responses.examples import answers
from server.interface.errors import InvalidRequest, NotFound, TextTooLong, UnsupportedPair
from server.text.unicode_text import replace_lone_surrogates
from server.translation.types import TextFormat

DEEPLX = ErrorFormat(
    "DeepLXError",
    # Some clients read `data` in any answer.
    lambda status, _, message: {"code": status, "message": message, "data": ""},
    {InvalidRequest: 400, UnsupportedPair: 406, TextTooLong: 413},
)

router = APIRouter(
    prefix="/deeplx",
    tags=["DeepLX-compatible"],
    responses=DEEPLX.responses(400, 404, 406, 413, 429, 500, 503, 504),
)

_FORMATS: Mapping[str, TextFormat] = {"": "text", "html": "html", "xml": "xml"}


class TranslateFields(BaseModel):
    """One text and its languages."""

    text: str
    target_lang: str
    source_lang: str = Field("auto", description="auto or empty: detected")
    tag_handling: str = Field("", description="html or xml: tags are kept")


def _answer(data: str, source: str, target: str, number: int) -> dict[str, object]:
    """Return the answer. It has no alternatives: some clients prefer the first one to `data`."""
    return {
        "code": 200,
        "id": number,
        "data": data,
        "alternatives": list[str](),
        "source_lang": source,
        "target_lang": target,
        "method": "Free",
    }


@router.post("", include_in_schema=False)
@router.post("/v1/translate", include_in_schema=False)
@router.post(
    "/translate",
    openapi_extra=body_of(TranslateFields),
    responses=answers("DeepLXAnswer", _answer("Guten Morgen.", "EN", "DE", 1_700_000_000_000)),
)
async def translate(request: Request) -> JSONResponse:
    """Translate one text. Answers also at `/translate` and `/v1/translate`, recognised by `target_lang`."""
    sent = await read_parameters(request)
    if sent.is_list("text"):
        raise InvalidRequest("`text` must be one string; /v2/translate accepts a list")
    text = sent.text("text")
    if not text:
        raise NotFound("No text to translate")
    source, target = sent.text("source_lang"), sent.text("target_lang")
    outcome = await translate_texts(request, [text], source, target, format=sent.choice("tag_handling", _FORMATS))
    detected = source_codes(outcome, source)[0]
    source = detected.upper() if outcome.detected else detected
    number = time.time_ns() // 1_000_000
    return JSONResponse(_answer(outcome.result.translations[0].text, source, target or "", number))


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


def _rpc_answer(call_id: int | None, texts: Sequence[str], language: str) -> dict[str, object]:
    result = {"texts": [{"text": text} for text in texts], "lang": language}
    return {"jsonrpc": "2.0", "id": call_id, "result": result}


@router.post("/jsonrpc", responses=answers("DeepLXRpcAnswer", _rpc_answer(None, ["Guten Morgen."], "EN")))
async def call(body: RpcCall, request: Request) -> JSONResponse:
    """Translate texts in the form of DeepL's page, for clients with a settable address."""
    source = body.params.lang.source_lang_user_selected
    texts = [each.text for each in body.params.texts]
    outcome = await translate_texts(request, texts, source, body.params.lang.target_lang)
    translated = [each.text for each in outcome.result.translations]
    languages = source_codes(outcome, source) or [source or "EN"]
    return JSONResponse(_rpc_answer(body.id, translated, languages[0].upper()))


DEEPLX_PROTOCOL = Protocol(
    name="deeplx",
    routers=(router,),
    error_format=DEEPLX,
    paths=("/deeplx", "/deeplx/"),
    shared=(SharedPaths("/deeplx", ("/translate", "/v1/translate"), lambda fields: fields.has("text", "target_lang")),),
    key_queries=("token",),
)
