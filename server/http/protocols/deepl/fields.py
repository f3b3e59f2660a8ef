"""Errors of the DeepL-compatible protocol, and request fields that its operations share, with their rules."""

import asyncio
import re
from collections.abc import Collection, Sequence
from typing import TypeVar

from fastapi import Request, Response

from server.http.requests.memories import named_memory
from server.http.requests.parameters import Parameters
from server.http.responses.errors import ErrorFormat
from server.http.state import ServerState
from server.interface.errors import (
    DocumentNotReady,
    InvalidApiKey,
    InvalidRequest,
    MissingApiKey,
    NotFound,
    QuotaExceeded,
    TextTooLong,
    UnsupportedPair,
)
from server.memory.store import Lookup
from server.text.formality import Formality, formality_languages, has_formality
from server.text.glossary import Glossary
from server.text.language_tags import match_language, means_detection
from server.translation.execution import run_on_glossary_thread
from server.translation.glossaries import DictionaryInfo
from server.translation.router import Router

Word = TypeVar("Word", bound=str)

DEEPL = ErrorFormat(
    "DeepLError",
    lambda _, __, message: {"message": message},
    {
        InvalidRequest: 400,
        TextTooLong: 413,
        DocumentNotReady: 503,
        MissingApiKey: 403,
        InvalidApiKey: 403,
        QuotaExceeded: 456,
    },
)

# Targets that this protocol names by variant only. The model determines which variant is written.
_VARIANTS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-PT", "PT-BR")}
_MAX_TAG_CHARACTERS = 64
_NO_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_MAX_NAME_CHARACTERS = 64
_MAX_NAMES = 20  # of ignored fields in one header
_MAX_GLOSSARIES = 5  # in one request
_MAX_ELEMENT_NAMES = 1000  # in each list of tags


def one_of(sent: Parameters, name: str, allowed: Sequence[Word]) -> Word | None:
    """Return the field's value, or None if it is missing or empty. Raises `InvalidRequest` unless it is allowed."""
    if not (value := sent.word(name)):
        return None
    if (found := next((each for each in allowed if each == value), None)) is None:
        raise InvalidRequest(f"Value for '{name}' not supported.")
    return found


def names_of(sent: Parameters, name: str) -> frozenset[str]:
    """Return element names, given as a list, as a repeated field, or separated by commas.

    Raises `InvalidRequest` for too many.
    """
    values = sent.texts(name)
    if (count := sum(value.count(",") + 1 for value in values)) > _MAX_ELEMENT_NAMES:
        raise InvalidRequest(f"`{name}` must have at most {_MAX_ELEMENT_NAMES} names. Given: {count}")
    return frozenset(part.strip() for value in values for part in value.split(",") if part.strip())


def warn_of_ignored(sent: Parameters, response: Response, known: Collection[str]) -> None:
    """Name the fields that have no effect in the header `Warning`. DeepL's clients gain fields, so none is an error."""
    ignored = [name for name in sent.names() if name not in known and sent.has(name)]
    if ignored:
        # Names are those of the request: anything else in a header could forge another one.
        written = ", ".join(_NO_NAME.sub("?", name[:_MAX_NAME_CHARACTERS]) for name in ignored[:_MAX_NAMES])
        response.headers["Warning"] = f'299 kvasir "ignored fields: {written}"'


def source_tag(sent: Parameters, model_router: Router) -> str | None:
    """Return `source_lang` as the models name it, or None if the language must be detected."""
    code = _code(sent, "source_lang")
    if means_detection(code):
        return None
    tag = match_language(code, model_router.source_languages)
    if tag is None or "-" in code:
        raise InvalidRequest("Value for 'source_lang' not supported.")
    return tag


def target_tag(sent: Parameters, model_router: Router) -> str:
    """Return `target_lang` as the models name it, reachable from `source_lang` if that is given.

    It may be the language of `source_lang`: the protocol writes English as British or American.
    """
    code = _code(sent, "target_lang")
    if not code:
        raise InvalidRequest("Parameter 'target_lang' not specified.")
    tag = match_language(code, model_router.target_languages)
    if tag is None:
        raise InvalidRequest("Value for 'target_lang' not supported.")
    source = _code(sent, "source_lang")
    if not means_detection(source) and match_language(source, [tag]) is None:
        try:
            return model_router.find(source, code).target
        except UnsupportedPair as error:
            raise UnsupportedPair(f"Value for 'target_lang' not supported with this source_lang: {error}") from error
    return tag


def language_code(tag: str) -> str:
    """Return a source language as this protocol writes it: in capitals, without a variant."""
    return tag.replace("_", "-").partition("-")[0].upper()


def target_codes(tag: str) -> Sequence[str]:
    """Return a target language as this protocol writes it: one code for each variant."""
    code = tag.replace("_", "-")
    return _VARIANTS.get(code.casefold(), (code.upper(),))


def formality_of(sent: Parameters, target: str) -> Formality | None:
    """Return the form of address; None by default, or if it is only preferred and `target` has no rules for it.

    Raises `InvalidRequest` for an unknown value, and for a form that is required of a target without rules.
    """
    value = one_of(sent, "formality", ("default", "more", "less", "prefer_more", "prefer_less"))
    if value is None or value == "default":
        return None
    if not has_formality(target):
        if value.startswith("prefer_"):
            return None
        supported = ", ".join(formality_languages())
        raise InvalidRequest(f"Target language does not support formality. Supported: {supported}. Given: {target}")
    return Formality.FORMAL if value.endswith("more") else Formality.INFORMAL


async def glossary_of(sent: Parameters, server: ServerState, source: str | None, target: str) -> Glossary | None:
    """Return the glossary that the request names. Raises `InvalidRequest` if it is missing or for other languages."""
    # A list in JSON, a repeated field, or names separated by commas, as clients send them in a form.
    several = [name.strip() for value in sent.texts("glossary_ids") for name in value.split(",") if name.strip()]
    if several and sent.text("glossary_id"):
        raise InvalidRequest("Parameter 'glossary_id' cannot be used together with 'glossary_ids'.")
    names = several or [name for name in sent.texts("glossary_id") if name]
    if not names:
        return None
    if len(names) > _MAX_GLOSSARIES:
        raise InvalidRequest(f"`glossary_ids` must have at most {_MAX_GLOSSARIES} entries. Given: {len(names)}")
    if source is None:
        raise InvalidRequest("Use of a glossary requires the source_lang parameter to be specified.")
    store, entries = server.stored_glossaries(), dict[str, str | Sequence[str]]()
    for name in dict.fromkeys(names):
        try:
            info = await asyncio.to_thread(store.info, name)
            found = [each for each in info.dictionaries if _is_for(each, source, target)]
            if not found:
                pairs = ", ".join(f"{each.source} to {each.target}" for each in info.dictionaries)
                raise InvalidRequest(f"The glossary is from {pairs}; it cannot be used from {source} to {target}.")
            glossary = await asyncio.to_thread(store.dictionary, found[0].id)
        except NotFound as error:
            raise InvalidRequest("Invalid or missing glossary id.") from error
        if len(names) == 1:
            return glossary
        entries = glossary.entries | entries
    return await run_on_glossary_thread(Glossary, entries)


async def memory_of(request: Request, sent: Parameters) -> Lookup | None:
    """Return the look-up in the translation memory that the request names, or in those by default."""
    try:
        threshold = sent.integer("translation_memory_threshold")
    except ValueError as error:
        raise InvalidRequest("Value for 'translation_memory_threshold' not supported.") from error
    return await named_memory(request, sent.text("translation_memory_id"), threshold)


def _is_for(dictionary: DictionaryInfo, source: str, target: str) -> bool:
    return bool(match_language(dictionary.source, [source]) and match_language(dictionary.target, [target]))


def _code(sent: Parameters, name: str) -> str:
    return (sent.text(name) or "").strip()[:_MAX_TAG_CHARACTERS]
