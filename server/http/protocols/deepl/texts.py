"""DeepL-compatible protocol: texts and usage; its other routes are in the modules next to this one."""

import re
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from server.http.protocols.deepl import documents, glossaries, languages, memories
from server.http.protocols.deepl.fields import (
    DEEPL,
    formality_of,
    glossary_of,
    language_code,
    memory_of,
    names_of,
    one_of,
    source_tag,
    target_tag,
    warn_of_ignored,
)
from server.http.protocols.protocol import Protocol
from server.http.requests.parameters import body_of, read_parameters
from server.http.requests.translation_call import run_translation
from server.http.responses.examples import answers
from server.http.responses.large_json import json_response
from server.http.state import ServerState, request_record, server_state
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.text.language_tags import match_language
from server.text.readers.pieces import MarkupOptions
from server.translation.service import AUTO, TranslationOutcome
from server.translation.types import TextFormat, TranslationRequest

router = APIRouter(prefix="/v2", tags=["DeepL-compatible"])

_MAX_BODY_BYTES = 128 * 1024
_UNLIMITED_CHARACTERS = 1_000_000_000_000  # the value that DeepL returns for unlimited accounts

_LINE_BREAK = re.compile(r"(?<=\S)[ \t]*(?:\r\n|\r|\n)[ \t]*(?=\S)")  # a single line break, not a blank line
# A line that begins with a bullet, a number or a letter: "- ", "2. ", "(b) ".
_LIST_ITEM = re.compile(r"^[ \t]*(?=(?:[^\w\s\"'“„«(¿¡]|\(?(?:\d{1,3}|[^\W\d_])[.)])[ \t]+\S)", re.MULTILINE)
_MIN_LIST_ITEMS = 2  # one may be a sentence that goes on with a number
_QUALITY_BEAMS = 4  # minimum with model_type quality_optimized

_NOT_WELL_FORMED = "not well-formed XML"  # in the message of an error
_SPLITTINGS = ("0", "1", "nonewlines")
# Fields besides those of `TranslateFields` that have an effect, or need none.
_OTHER_FIELDS = (
    "auth_key", "enable_beta_languages", "ignore_tags", "model_type", "non_splitting_tags", "outline_detection",
    "show_billed_characters", "splitting_tags",
)  # fmt: skip
_MODEL_TYPES = ("quality_optimized", "prefer_quality_optimized", "latency_optimized")
_FORMATS: tuple[TextFormat, ...] = ("xml", "html")


class TranslateFields(BaseModel):
    """Texts, languages and options of a translation."""

    text: list[str] = Field(description="repeated in a form")
    target_lang: str = Field(description="language to translate into")
    source_lang: str | None = Field(None, description="language of the texts; default: each is detected")
    context: str | None = Field(None, description="accepted and ignored")
    split_sentences: Literal["0", "1", "nonewlines"] | None = Field(
        None, description="nonewlines: a sentence may continue on the next line, items of a list apart; 0 equals it"
    )
    preserve_formatting: bool | None = None
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] | None = None
    glossary_id: str | None = None
    glossary_ids: list[str] | None = Field(None, description="up to five glossaries; a term of several is the first's")
    tag_handling: Literal["xml", "html"] | None = None
    tag_handling_version: Literal["v1", "v2"] | None = Field(None, description="accepted and returned; equal in effect")
    splitting_tags: list[str] | None = Field(None, description="elements that end a sentence")
    non_splitting_tags: list[str] | None = Field(None, description="elements within sentences")
    ignore_tags: list[str] | None = Field(None, description="elements that are not translated")
    model_type: Literal["quality_optimized", "prefer_quality_optimized", "latency_optimized"] | None = Field(
        None, description="latency_optimized selects greedy search, the others beam search"
    )
    show_billed_characters: bool | None = None
    translation_memory_id: str | None = None
    translation_memory_threshold: int | None = Field(None, ge=0, le=100, description="by default 75")


@router.get("/translate", include_in_schema=False)
@router.post(
    "/translate",
    openapi_extra=body_of(TranslateFields),
    responses=answers(
        "DeepLTranslations",
        {
            "translations": [
                {
                    "detected_source_language": "EN",
                    "text": "Guten Morgen.",
                    "billed_characters": 13,
                    "model_type_used": "quality_optimized",
                    "tag_handling_version": "v2",
                }
            ]
        },
        optional=["model_type_used", "tag_handling_version"],
    )
    | DEEPL.responses(400, 413, 429, 500, 503, 504),
)
async def translate(request: Request) -> Response:
    """Translate texts. The response keeps their order."""
    server = server_state(request)
    if (num_bytes := len(await request.body())) > _MAX_BODY_BYTES:
        raise TextTooLong(f"Request size exceeds the limit: {num_bytes} bytes, {_MAX_BODY_BYTES} allowed")
    sent = await read_parameters(request)
    texts = tuple(sent.texts("text"))
    if not texts:
        raise InvalidRequest("Parameter 'text' not specified.")
    _, model_router = server.accept()
    source, target = source_tag(sent, model_router), target_tag(sent, model_router)
    model_type = (one_of(sent, "model_type", _MODEL_TYPES) or "").removeprefix("prefer_")
    splitting = one_of(sent, "split_sentences", _SPLITTINGS)
    # There is one version of tag handling: XML is read strictly, as in v2.
    tag_version = one_of(sent, "tag_handling_version", ("v1", "v2")) or "v2"
    for name in ("preserve_formatting", "outline_detection", "show_billed_characters"):
        try:
            sent.flag(name)
        except ValueError as error:
            raise InvalidRequest(f"Value for '{name}' not supported.") from error
    tag_handling = one_of(sent, "tag_handling", _FORMATS)
    model_texts = texts
    if not tag_handling and splitting in ("0", "nonewlines"):
        # In HTML and XML a line break is white space already.
        model_texts = tuple(map(_with_joined_lines, texts))
    translation = TranslationRequest(
        model_texts,
        "",
        "",
        DecodingOptions(beam_size=_beam_size(model_type, server)),
        glossary=await glossary_of(sent, server, source, target),
        formality=formality_of(sent, target),
        memory=await memory_of(request, sent),
        format=tag_handling or "text",
        markup=MarkupOptions(
            splitting_tags=names_of(sent, "splitting_tags"),
            non_splitting_tags=names_of(sent, "non_splitting_tags"),
            ignore_tags=names_of(sent, "ignore_tags"),
        ),
    )
    # A text in the target language stays as it is; detection also finds the texts of which `source_lang` is wrong.
    is_detected = source is None or match_language(source, [target]) is not None
    try:
        outcome = await run_translation(request, translation, AUTO if is_detected else source, target)
    except InvalidRequest as error:
        if tag_handling == "xml" and _NOT_WELL_FORMED in str(error):
            raise _of_tag_handling(error) from error
        raise
    server.num_characters_billed += translation.num_characters
    used = ({"model_type_used": model_type} if model_type else {}) | (
        {"tag_handling_version": tag_version} if tag_handling else {}
    )
    response = json_response({"translations": _translations(outcome, texts, source, used)})
    response.headers["X-Trace-ID"] = request_record(request).id
    warn_of_ignored(sent, response, {*TranslateFields.model_fields, *_OTHER_FIELDS} - {"context"})
    return response


@router.get("/usage", responses=answers("Usage", {"character_count": 12, "character_limit": 1_000_000_000_000}))
@router.post("/usage", include_in_schema=False)
async def usage(request: Request) -> Response:
    """Return the characters translated: with API keys, those of the key today, else all since the server started."""
    server, key = server_state(request), request_record(request).key
    count, limit = server.num_characters_billed, None
    if server.key_gate is not None and key is not None:
        count, limit = server.key_gate.usage(key).characters, key.limits.characters_per_day
    return json_response(
        {"character_count": count, "character_limit": _UNLIMITED_CHARACTERS if limit is None else limit}
    )


def _with_joined_lines(text: str) -> str:
    """Return a text whose lines are joined, except for the items of a list."""
    items = {match.end() for match in _LIST_ITEM.finditer(text.replace("\r", "\n"))}
    if len(items) < _MIN_LIST_ITEMS:
        items = set()
    return _LINE_BREAK.sub(lambda match: match[0] if match.end() in items else " ", text)


def _of_tag_handling(error: InvalidRequest) -> InvalidRequest:
    """Return an error of XML that is not well-formed in the words of this protocol, whose field is not `format`."""
    place = str(error).partition("; format html")[0]
    return InvalidRequest(
        f"Tag handling parsing failed, please check input: {place}. With tag_handling=html it need not be well-formed."
    )


def _beam_size(model_type: str, server: ServerState) -> int | None:
    if not model_type:
        return None
    if model_type == "latency_optimized":
        return 1
    return max(server.settings.default_beam_size, min(_QUALITY_BEAMS, server.settings.max_beam_size))


def _translations(
    outcome: TranslationOutcome, texts: tuple[str, ...], source: str | None, used: dict[str, str]
) -> list[dict[str, object]]:
    translations: list[dict[str, object]] = []
    for index, translation in enumerate(outcome.result.translations):
        detected = outcome.detected[index] if outcome.detected else None
        # The protocol requires a language; a text without letters counts as English.
        code = language_code(source or ("en" if detected is None else detected.language))
        answer = {"detected_source_language": code, "text": translation.text, "billed_characters": len(texts[index])}
        translations.append(answer | used)
    return translations


DEEPL_PROTOCOL = Protocol(
    name="deepl",
    routers=(router, languages.router, documents.router, glossaries.router, memories.router),
    error_format=DEEPL,
    paths=("/v2/", "/v3/"),
    upload_paths=(documents.PATH,),
    # The progress and the content of a document are POST requests.
    engine_free_paths=(
        f"{documents.PATH}/",
        "/v2/glossaries",
        "/v3/glossaries",
        memories.PATH,
        f"{memories.PATH}/",
        "/v2/languages",
        "/v3/languages",
        "/v2/usage",
    ),
    open_paths=(memories.UPLOAD_PATH, memories.DOWNLOAD_PATH),  # their addresses have keys of their own
    raw_upload_paths=(memories.UPLOAD_PATH,),
    key_parameter="auth_key",
)
