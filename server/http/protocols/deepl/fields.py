"""Fields that several operations of the DeepL-compatible protocol share, and their rules."""

import asyncio
from collections.abc import Sequence

from server.http.requests.parameters import Parameters
from server.http.state import ServerState
from server.interface.errors import InvalidRequest, NotFound, UnsupportedPair
from server.text.glossary import Glossary
from server.text.language_tags import match_language
from server.translation.router import Router

# Targets that this protocol knows by their variants only; a model writes whichever it writes.
_VARIANTS = {"en": ("EN-GB", "EN-US"), "pt": ("PT-PT", "PT-BR")}
_MAX_TAG_CHARACTERS = 64
_MAX_GLOSSARIES = 5  # of one request


def one_of(sent: Parameters, name: str, allowed: Sequence[str]) -> str | None:
    """A value of a field that may have these; None where it is missing or empty.

    Raises `InvalidRequest` for another.
    """
    value = sent.word(name) or None
    if value is not None and value not in allowed:
        raise InvalidRequest(f"Value for '{name}' not supported.")
    return value


def names_of(sent: Parameters, name: str) -> tuple[str, ...]:
    """Names of elements: a list, a repeated field, or separated by commas."""
    return tuple(part.strip() for value in sent.texts(name) for part in value.split(",") if part.strip())


def source_tag(sent: Parameters, catalogue: Router) -> str | None:
    """`source_lang` as the models call it; None where the language is to be detected."""
    code = _code(sent, "source_lang")
    if not code:
        return None
    tag = match_language(code, catalogue.source_languages)
    if tag is None or "-" in code:
        raise InvalidRequest("Value for 'source_lang' not supported.")
    return tag


def target_tag(sent: Parameters, catalogue: Router) -> str:
    """`target_lang` as the models call it, from `source_lang` where there is one."""
    code = _code(sent, "target_lang")
    if not code:
        raise InvalidRequest("Parameter 'target_lang' not specified.")
    tag = match_language(code, catalogue.target_languages)
    if tag is None:
        raise InvalidRequest("Value for 'target_lang' not supported.")
    if source := _code(sent, "source_lang"):
        try:
            return catalogue.find(source, code).target
        except UnsupportedPair as error:
            raise UnsupportedPair(f"Value for 'target_lang' not supported with this source_lang: {error}") from error
    return tag


def language_code(tag: str) -> str:
    """A source language as this protocol writes it: in capitals, without a variant."""
    return tag.replace("_", "-").partition("-")[0].upper()


def target_codes(tag: str) -> Sequence[str]:
    """A target language as this protocol writes it: each variant there is."""
    code = tag.replace("_", "-")
    return _VARIANTS.get(code.casefold(), (code.upper(),))


async def glossary_of(sent: Parameters, server: ServerState, source: str | None, target: str) -> Glossary | None:
    """The stored glossary that is named. Raises `InvalidRequest` where it is not there or of other languages."""
    names = [name for name in (*sent.texts("glossary_id"), *sent.texts("glossary_ids")) if name]
    if not names:
        return None
    if len(names) > _MAX_GLOSSARIES:
        raise InvalidRequest(f"glossary_ids has {len(names)} entries; it may have {_MAX_GLOSSARIES}.")
    if source is None:
        raise InvalidRequest("Use of a glossary requires the source_lang parameter to be specified.")
    store, entries = server.stored_glossaries(), dict[str, str]()
    for name in dict.fromkeys(names):
        try:
            info = await asyncio.to_thread(store.info, name)
            glossary = await asyncio.to_thread(store.glossary, name)
        except NotFound as error:
            raise InvalidRequest("Invalid or missing glossary id.") from error
        if not (match_language(info.source, [source]) and match_language(info.target, [target])):
            raise InvalidRequest(
                f"The glossary is from {info.source} to {info.target}; it cannot be used from {source} to {target}."
            )
        if len(names) == 1:
            return glossary
        entries = glossary.entries | entries
    return await asyncio.to_thread(Glossary, entries)


def _code(sent: Parameters, name: str) -> str:
    return (sent.text(name) or "").strip()[:_MAX_TAG_CHARACTERS]
