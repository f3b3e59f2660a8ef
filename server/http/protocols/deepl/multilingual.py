"""DeepL-compatible routes for multilingual glossaries, which have a dictionary for each pair of languages."""

import asyncio
import re
from collections.abc import Mapping
from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from server.http.protocols.deepl.errors import deepl_responses
from server.http.protocols.deepl.glossaries import (
    SEPARATORS,
    Dictionaries,
    glossary_pairs,
    language_pair,
    parse_entries,
)
from server.http.requests.parameters import body_of, read_parameters
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.unicode_text import replace_lone_surrogates
from server.translation.execution import run_on_glossary_thread
from server.translation.glossaries import (
    MAX_DICTIONARIES,
    GlossaryInfo,
    MultilingualGlossaries,
    MultilingualInfo,
    Pair,
)

_FIELD_OF_ITEM = re.compile(r"dictionaries\[(\d{1,3})\](?:\.(\w+)|\[(\w+)\])")  # in a form

router = APIRouter(prefix="/v3/glossaries", tags=["DeepL-compatible"])


class DictionaryFields(BaseModel):
    """Languages of a dictionary; each line of `entries` has a term and its translation.

    Both languages may follow: such an entry belongs to the dictionary of these.
    """

    source_lang: str
    target_lang: str
    entries: str
    entries_format: str = Field("tsv", description="tsv or csv")


class MultilingualFields(BaseModel):
    """Name and dictionaries of a glossary."""

    name: str
    dictionaries: list[DictionaryFields]


class ChangeFields(BaseModel):
    """New name of a glossary, and a dictionary whose entries are added."""

    name: str | None = None
    dictionaries: list[DictionaryFields] | None = None


class DictionaryAnswer(BaseModel):
    """A dictionary without its entries."""

    source_lang: str
    target_lang: str
    entry_count: int


class MultilingualAnswer(BaseModel):
    """A glossary without its entries."""

    glossary_id: str
    name: str
    dictionaries: list[DictionaryAnswer]
    creation_time: datetime


class MultilingualListAnswer(BaseModel):
    """All glossaries, oldest first."""

    glossaries: list[MultilingualAnswer]


class EntriesAnswer(BaseModel):
    """A dictionary with its entries."""

    source_lang: str
    target_lang: str
    entries: str
    entries_format: str = "tsv"


class EntriesListAnswer(BaseModel):
    """The dictionaries of the languages of a request."""

    dictionaries: list[EntriesAnswer]


@router.post(
    "", status_code=201, openapi_extra=body_of(MultilingualFields), responses=deepl_responses(400, 413, 500, 503)
)
async def create(request: Request) -> MultilingualAnswer:
    """Store a glossary."""
    body = await _body(request)
    name = _text(body, "name")
    dictionaries: Dictionaries = {}
    given: set[Pair] = set()
    for pair, found in await _dictionaries(request, body):
        if pair in given:
            raise InvalidRequest(
                f"`dictionaries` must have one entry for each pair. Given twice: {pair[0]} to {pair[1]}"
            )
        given.add(pair)
        for its_pair, its_entries in found.items():
            dictionaries.setdefault(its_pair, {}).update(its_entries)
    return _answer(await run_on_glossary_thread(_glossaries(request).create, name, dictionaries))


@router.get("", responses=deepl_responses(503))
async def all_glossaries(request: Request) -> MultilingualListAnswer:
    """Return all glossaries without their entries."""
    infos = await asyncio.to_thread(_glossaries(request).all)
    return MultilingualListAnswer(glossaries=list(map(_answer, infos)))


@router.get("/{glossary_id}", responses=deepl_responses(404, 503))
async def one(request: Request, glossary_id: str) -> MultilingualAnswer:
    """Return one glossary without its entries."""
    return _answer(await asyncio.to_thread(_glossaries(request).info, glossary_id))


@router.get("/{glossary_id}/entries", responses=deepl_responses(400, 404, 503))
async def entries(request: Request, glossary_id: str, source_lang: str, target_lang: str) -> EntriesListAnswer:
    """Return the entries of the dictionary from and to these languages."""
    pair = language_pair(source_lang, target_lang)
    glossary = await asyncio.to_thread(_glossaries(request).entries, glossary_id, pair)
    lines = "\n".join(f"{term}\t{translation}" for term, translation in glossary.entries.items())
    return EntriesListAnswer(dictionaries=[EntriesAnswer(source_lang=pair[0], target_lang=pair[1], entries=lines)])


@router.patch("/{glossary_id}", openapi_extra=body_of(ChangeFields), responses=deepl_responses(400, 404, 413, 500, 503))
async def change(request: Request, glossary_id: str) -> MultilingualAnswer:
    """Rename a glossary, or add entries to a dictionary; terms that it has get the new translation."""
    body = await _body(request)
    glossaries = _glossaries(request)
    await asyncio.to_thread(glossaries.info, glossary_id)
    name, given = body.get("name"), body.get("dictionaries")
    if name is None and given is None:
        raise InvalidRequest("Parameter 'name' or 'dictionaries' not specified.")
    added = await _dictionaries(request, body) if given is not None else []
    if name is not None:
        if not isinstance(name, str) or not name:
            raise InvalidRequest("Value for 'name' not supported.")
        await asyncio.to_thread(glossaries.rename, glossary_id, replace_lone_surrogates(name))
    for _, found in added:
        for pair, its_entries in found.items():
            await run_on_glossary_thread(glossaries.merge, glossary_id, pair, its_entries)
    return _answer(await asyncio.to_thread(glossaries.info, glossary_id))


@router.put(
    "/{glossary_id}/dictionaries",
    openapi_extra=body_of(DictionaryFields),
    responses=deepl_responses(400, 404, 413, 500, 503),
)
async def replace(request: Request, glossary_id: str) -> DictionaryAnswer:
    """Replace the dictionary of a pair of languages, or add it."""
    # Only this dictionary is replaced, so a row of another pair is an error.
    pair, found = await _dictionary(request, await _body(request), takes_others=False)
    return _dictionary_answer(await run_on_glossary_thread(_glossaries(request).put, glossary_id, pair, found[pair]))


@router.delete("/{glossary_id}/dictionaries", status_code=204, responses=deepl_responses(400, 404, 503))
async def delete_dictionary(request: Request, glossary_id: str, source_lang: str, target_lang: str) -> None:
    """Delete the dictionary of a pair of languages."""
    await asyncio.to_thread(
        _glossaries(request).delete_dictionary, glossary_id, language_pair(source_lang, target_lang)
    )


@router.delete("/{glossary_id}", status_code=204, responses=deepl_responses(404, 503))
async def delete(request: Request, glossary_id: str) -> None:
    """Delete a glossary with all its dictionaries."""
    await asyncio.to_thread(_glossaries(request).delete, glossary_id)


def _glossaries(request: Request) -> MultilingualGlossaries:
    return MultilingualGlossaries(server_state(request).stored_glossaries())


async def _body(request: Request) -> dict[str, object]:
    """Return the body as an object; DeepL's client for Java sends forms with `dictionaries[0].source_lang`."""
    sent = await read_parameters(request)
    body = sent.as_json()
    items: dict[int, dict[str, object]] = {}
    for name in () if sent.is_json else tuple(body):
        if (item := _FIELD_OF_ITEM.fullmatch(name)) is not None:
            items.setdefault(int(item[1]), {})[item[2] or item[3]] = body.pop(name)
    if items:
        body["dictionaries"] = [items[index] for index in sorted(items)]
    return body


async def _dictionaries(request: Request, body: dict[str, object]) -> list[tuple[Pair, Dictionaries]]:
    given = body.get("dictionaries")
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_DICTIONARIES:
        raise InvalidRequest(f"`dictionaries` must be a list of 1 to {MAX_DICTIONARIES} dictionaries")
    return [await _dictionary(request, each, takes_others=True) for each in given]


async def _dictionary(request: Request, given: object, *, takes_others: bool) -> tuple[Pair, Dictionaries]:
    """Return the pair of a dictionary, and its entries by the pairs that they are for."""
    if not isinstance(given, dict):
        raise InvalidRequest("an entry of `dictionaries` must be an object")
    source, target, its_entries = (_text(given, name) for name in ("source_lang", "target_lang", "entries"))
    pair = language_pair(source, target)
    _, model_router = server_state(request).accept()
    pairs = glossary_pairs(model_router)
    if pair not in pairs:
        raise InvalidRequest("Unsupported glossary source language and target language.")
    entries_format = given.get("entries_format") or "tsv"
    if not isinstance(entries_format, str) or entries_format not in SEPARATORS:
        raise InvalidRequest("Value for 'entries_format' not supported.")
    others = pairs if takes_others else ()
    return pair, await run_on_glossary_thread(parse_entries, its_entries, SEPARATORS[entries_format], pair, others)


def _text(given: Mapping[str, object], name: str) -> str:
    """Return a field without lone surrogates. Raises `InvalidRequest` unless it is a string that is not empty."""
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"Parameter '{name}' not specified.")
    return replace_lone_surrogates(value)


def _dictionary_answer(info: GlossaryInfo) -> DictionaryAnswer:
    return DictionaryAnswer(source_lang=info.source, target_lang=info.target, entry_count=info.num_entries)


def _answer(info: MultilingualInfo) -> MultilingualAnswer:
    return MultilingualAnswer(
        glossary_id=info.id,
        name=info.name,
        dictionaries=list(map(_dictionary_answer, info.dictionaries)),
        creation_time=info.created,
    )
