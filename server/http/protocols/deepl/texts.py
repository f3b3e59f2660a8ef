"""DeepL-compatible routes for texts, languages and usage."""

import re
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from server.http.protocols.deepl.errors import deepl_responses
from server.http.protocols.deepl.fields import (
    formality_of,
    glossary_of,
    language_code,
    names_of,
    one_of,
    source_tag,
    target_codes,
    target_tag,
    warn_of_ignored,
)
from server.http.requests.openapi_bodies import body_of
from server.http.requests.parameters import Parameters, read_parameters
from server.http.requests.translation_call import run_translation
from server.http.state import ServerState, request_record, server_state
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest, TextTooLong
from server.text.formality import has_formality
from server.text.language_tags import display_name, match_language
from server.text.readers.pieces import MarkupOptions
from server.translation.service import AUTO, TranslationOutcome
from server.translation.types import TranslationRequest

router = APIRouter(prefix="/v2", tags=["DeepL-compatible"])

_MAX_BODY_BYTES = 128 * 1024
_UNLIMITED_CHARACTERS = 1_000_000_000_000  # the value that DeepL returns for unlimited accounts

_LINE_BREAK = re.compile(r"(?<=\S)[ \t]*(?:\r\n|\r|\n)[ \t]*(?=\S)")  # a single line break, not a blank line
_QUALITY_BEAMS = 4  # minimum with model_type quality_optimized

_SPLITTINGS = ("0", "1", "nonewlines")
# Fields beside those of `TranslateFields` that have an effect, or need none.
_OTHER_FIELDS = (
    "auth_key", "enable_beta_languages", "glossary_ids", "ignore_tags", "model_type", "non_splitting_tags",
    "outline_detection", "show_billed_characters", "splitting_tags", "tag_handling_version",
)  # fmt: skip
ModelType = Literal["quality_optimized", "latency_optimized"]


class TranslateFields(BaseModel):
    """Texts, languages and options of a translation."""

    text: list[str] = Field(description="repeated in a form")
    target_lang: str = Field(description="language to translate into")
    source_lang: str | None = Field(None, description="language of the texts; default: each is detected")
    context: str | None = Field(None, description="accepted and ignored")
    split_sentences: Literal["0", "1", "nonewlines"] | None = Field(
        None, description="nonewlines: a sentence may continue on the next line; 0 has the same effect"
    )
    preserve_formatting: bool | None = None
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] | None = None
    glossary_id: str | None = None
    tag_handling: Literal["xml", "html"] | None = None
    splitting_tags: list[str] | None = Field(None, description="elements that end a sentence")
    non_splitting_tags: list[str] | None = Field(None, description="elements within sentences")
    ignore_tags: list[str] | None = Field(None, description="elements that are not translated")
    model_type: Literal["quality_optimized", "prefer_quality_optimized", "latency_optimized"] | None = Field(
        None, description="latency_optimized selects greedy search, the others beam search"
    )
    show_billed_characters: bool | None = None


class TranslationAnswer(BaseModel):
    """Translation of one text."""

    detected_source_language: str
    text: str
    billed_characters: int
    model_type_used: ModelType | None = None


class TranslationsAnswer(BaseModel):
    """The translations in the order of the texts."""

    translations: list[TranslationAnswer]


class LanguageAnswer(BaseModel):
    """Language; `supports_formality` is present for targets."""

    language: str
    name: str
    supports_formality: bool | None = None


class UsageAnswer(BaseModel):
    """Characters translated since the server started."""

    character_count: int
    character_limit: int


@router.get("/translate", response_model_exclude_none=True, include_in_schema=False)
@router.post(
    "/translate",
    response_model_exclude_none=True,
    openapi_extra=body_of(TranslateFields),
    responses=deepl_responses(400, 413, 429, 500, 503, 504),
)
async def translate(request: Request, response: Response) -> TranslationsAnswer:
    """Translate texts. The response keeps their order."""
    server = server_state(request)
    response.headers["X-Trace-ID"] = request_record(request).id
    if (num_bytes := len(await request.body())) > _MAX_BODY_BYTES:
        raise TextTooLong(f"Request size exceeds the limit: {num_bytes} bytes, {_MAX_BODY_BYTES} allowed")
    sent = await read_parameters(request, server.settings.max_texts + 50)
    texts = tuple(sent.texts("text"))
    if not texts:
        raise InvalidRequest("Parameter 'text' not specified.")
    _, model_router = server.accept()
    source, target = source_tag(sent, model_router), target_tag(sent, model_router)
    model_type = _model_type(sent)
    _check_accepted(sent)
    warn_of_ignored(sent, response, {*TranslateFields.model_fields, *_OTHER_FIELDS} - {"context"})
    tag_handling = one_of(sent, "tag_handling", ("xml", "html"))
    model_texts = texts
    if not tag_handling and one_of(sent, "split_sentences", _SPLITTINGS) in ("0", "nonewlines"):
        # In HTML and XML a line break is white space already.
        model_texts = tuple(_LINE_BREAK.sub(" ", text) for text in texts)
    translation = TranslationRequest(
        model_texts,
        "",
        "",
        DecodingOptions(beam_size=_beam_size(model_type, server)),
        glossary=await glossary_of(sent, server, source, target),
        formality=formality_of(sent, target),
        format="xml" if tag_handling == "xml" else "html" if tag_handling == "html" else "text",
        markup=MarkupOptions(
            splitting_tags=names_of(sent, "splitting_tags"),
            non_splitting_tags=names_of(sent, "non_splitting_tags"),
            ignore_tags=names_of(sent, "ignore_tags"),
        ),
    )
    # A text in the target language stays as it is; detection also finds the texts of which `source_lang` is wrong.
    is_detected = source is None or match_language(source, [target]) is not None
    outcome = await run_translation(request, translation, AUTO if is_detected else source, target)
    server.num_characters_billed += translation.num_characters
    return _response(outcome, texts, source, model_type)


@router.head("/languages", include_in_schema=False)
@router.get("/languages", response_model_exclude_none=True, responses=deepl_responses(400, 503))
@router.post("/languages", response_model_exclude_none=True, include_in_schema=False)
async def languages(request: Request, type: str | None = None) -> list[LanguageAnswer]:  # noqa: A002
    """Return the source languages (`type=source`, the default) or the target languages (`type=target`)."""
    server = server_state(request)
    sent = await read_parameters(request, 50)
    kind = one_of(sent, "type", ("source", "target")) or type or "source"
    _, model_router = server.accept()
    if kind == "source":
        codes = dict.fromkeys(language_code(tag) for tag in sorted(model_router.source_languages))
        return [LanguageAnswer(language=code, name=display_name(code)) for code in codes]
    codes = dict.fromkeys(code for tag in sorted(model_router.target_languages) for code in target_codes(tag))
    return [
        LanguageAnswer(language=code, name=display_name(code), supports_formality=has_formality(code)) for code in codes
    ]


@router.get("/usage")
@router.post("/usage", include_in_schema=False)
async def usage(request: Request) -> UsageAnswer:
    """Return the characters translated: with API keys, those of the key today, else all since the server started."""
    server, key = server_state(request), request_record(request).key
    if server.key_gate is None or key is None:
        return UsageAnswer(character_count=server.num_characters_billed, character_limit=_UNLIMITED_CHARACTERS)
    limit = key.limits.characters_per_day
    return UsageAnswer(
        character_count=server.key_gate.usage(key).characters,
        character_limit=_UNLIMITED_CHARACTERS if limit is None else limit,
    )


def _model_type(sent: Parameters) -> ModelType | None:
    model_type = one_of(sent, "model_type", ("quality_optimized", "prefer_quality_optimized", "latency_optimized"))
    if model_type is None:
        return None
    return "latency_optimized" if model_type == "latency_optimized" else "quality_optimized"


def _beam_size(model_type: ModelType | None, server: ServerState) -> int | None:
    if model_type is None:
        return None
    if model_type == "latency_optimized":
        return 1
    return max(server.settings.default_beam_size, min(_QUALITY_BEAMS, server.settings.max_beam_size))


def _check_accepted(sent: Parameters) -> None:
    """Raise `InvalidRequest` for invalid values."""
    one_of(sent, "split_sentences", _SPLITTINGS)
    one_of(sent, "tag_handling_version", ("v1", "v2"))
    for name in ("preserve_formatting", "outline_detection", "show_billed_characters"):
        try:
            sent.flag(name)
        except ValueError as error:
            raise InvalidRequest(f"Value for '{name}' not supported.") from error


def _response(
    outcome: TranslationOutcome, texts: tuple[str, ...], source: str | None, model_type: ModelType | None
) -> TranslationsAnswer:
    translations = []
    for index, translation in enumerate(outcome.result.translations):
        detected = outcome.detected[index] if outcome.detected else None
        # The protocol requires a language; a text without letters counts as English.
        tag = source or ("en" if detected is None else detected.language)
        translations.append(
            TranslationAnswer(
                detected_source_language=language_code(tag),
                text=translation.text,
                billed_characters=len(texts[index]),
                model_type_used=model_type,
            )
        )
    return TranslationsAnswer(translations=translations)
