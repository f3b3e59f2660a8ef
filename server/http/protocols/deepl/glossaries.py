"""DeepL-compatible routes for glossaries, with one dictionary and with several, and the notations of their entries."""

import asyncio
import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel, Field

from server.http.protocols.deepl.fields import DEEPL, language_code
from server.http.requests.parameters import body_of, read_parameters
from server.http.responses.examples import answers
from server.http.responses.large_json import json_response
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.text.glossary import Glossary
from server.text.unicode_text import replace_lone_surrogates
from server.translation.execution import run_on_glossary_thread
from server.translation.glossaries import MAX_DICTIONARIES, DictionaryInfo, GlossaryInfo, GlossaryStore, Pair
from server.translation.router import Router

router = APIRouter(tags=["DeepL-compatible"])

Dictionaries = dict[Pair, dict[str, str]]
"""Entries of each pair of languages."""

_FIELD_OF_ITEM = re.compile(r"dictionaries\[(\d{1,3})\](?:\.(\w+)|\[(\w+)\])")  # in a form
SEPARATORS = {"tsv": "\t", "csv": ","}
_BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


def language_pair(source: str, target: str) -> Pair:
    """Return the languages of a dictionary as they are stored: in lower case, without a variant."""
    return language_code(source).lower(), language_code(target).lower()


def parse_entries(text: str, separator: str, pair: Pair, others: Collection[Pair] = ()) -> Dictionaries:
    """Return the dictionaries that a list of entries has: the one of `pair`, and those of `others` that rows name.

    A row has a term, its translation and, optionally, the languages of both; further columns and blank rows do not
    count. Raises `InvalidRequest` for a row without a translation, with one language, with languages of no dictionary,
    or with a term that another row of its dictionary has.
    """
    dictionaries: Dictionaries = {}
    for number, row in enumerate(_rows(text.removeprefix(_BYTE_ORDER_MARK), separator), 1):
        term, translation, source, target, *_ = [*(field.strip() for field in row), "", "", "", ""]
        if not any(field.strip() for field in row):
            continue
        if not term or not translation:
            raise InvalidRequest(f"entry {number} of the glossary must be a term and its translation")
        if bool(source) != bool(target):
            raise InvalidRequest(f"entry {number} of the glossary must have both languages or none")
        its_pair = language_pair(source, target) if source else pair
        if its_pair != pair and its_pair not in others:
            expected = " or ".join(f"{each[0]} to {each[1]}" for each in dict.fromkeys((pair, *others)))
            raise InvalidRequest(
                f"entry {number} of the glossary is from {its_pair[0]} to {its_pair[1]}. Must be: {expected}"
            )
        entries = dictionaries.setdefault(its_pair, {})
        if term in entries:
            raise InvalidRequest(f"entry {number} of the glossary repeats a term: {term!r}")
        entries[term] = translation
    return dictionaries or {pair: {}}


def _rows(text: str, separator: str) -> Iterable[Sequence[str]]:
    if separator == "\t":
        return (line.split("\t") for line in text.splitlines())
    try:
        return list(csv.reader(io.StringIO(text), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InvalidRequest(f"invalid CSV of glossary entries: {error}") from error


class DictionaryFields(BaseModel):
    """Languages of a dictionary; each line of `entries` has a term and its translation.

    Both languages may follow: such an entry belongs to the dictionary of these.
    """

    source_lang: str
    target_lang: str
    entries: str
    entries_format: str = Field("tsv", description="tsv or csv")


class GlossaryFields(DictionaryFields):
    """A glossary with one dictionary."""

    name: str


class MultilingualFields(BaseModel):
    """Name and dictionaries of a glossary."""

    name: str
    dictionaries: list[DictionaryFields]


class ChangeFields(BaseModel):
    """New name of a glossary, and a dictionary whose entries are added."""

    name: str | None = None
    dictionaries: list[DictionaryFields] | None = None


def _entries(pair: Pair, lines: str) -> dict[str, object]:
    return {"source_lang": pair[0], "target_lang": pair[1], "entries": lines, "entries_format": "tsv"}


def _lines(glossary: Glossary) -> str:
    return "\n".join(f"{term}\t{translation}" for term, translation in glossary.entries.items())


def _of_pair(info: DictionaryInfo) -> dict[str, object]:
    return {"source_lang": info.source, "target_lang": info.target, "entry_count": info.num_entries}


def _named(info: GlossaryInfo) -> dict[str, object]:
    return {"glossary_id": info.id, "name": info.name, "creation_time": info.created}


def _single(info: GlossaryInfo) -> dict[str, object]:
    return {**_named(info), "ready": True, **_of_pair(info.only)}


def _several(info: GlossaryInfo) -> dict[str, object]:
    return {**_named(info), "dictionaries": list(map(_of_pair, info.dictionaries))}


_PAIR = {"source_lang": "en", "target_lang": "de"}
_NAMED = {"glossary_id": "7c9e", "name": "Tea", "creation_time": "2026-11-28T12:00:00Z"}
_GLOSSARY = {**_NAMED, "ready": True, **_PAIR, "entry_count": 1}
_DICTIONARY = {**_PAIR, "entry_count": 1}
_MULTILINGUAL = {**_NAMED, "dictionaries": [_DICTIONARY]}


@router.get(
    "/v2/glossary-language-pairs",
    responses={**answers("GlossaryPairs", {"supported_languages": [_PAIR]}), **DEEPL.responses(503)},
)
def pairs(request: Request) -> Response:
    """Return the pairs with a model of their own. Terms cannot be preserved through a pivot language."""
    found = glossary_pairs(server_state(request).accept()[1])
    return json_response({"supported_languages": [{"source_lang": pair[0], "target_lang": pair[1]} for pair in found]})


@router.post(
    "/v2/glossaries",
    status_code=201,
    openapi_extra=body_of(GlossaryFields),
    responses={**answers("Glossary", _GLOSSARY, status=201), **DEEPL.responses(400, 413, 500, 503)},
)
async def create(request: Request) -> Response:
    """Store a glossary."""
    body = await _body(request)
    name = _text(body, "name")
    _, found = await _dictionary(request, body, takes_others=False)
    return json_response(_single(await run_on_glossary_thread(_glossaries(request).create, name, found)), 201)


@router.get(
    "/v2/glossaries",
    responses={**answers("Glossaries", {"glossaries": [_GLOSSARY]}), **DEEPL.responses(503)},
)
def all_glossaries(request: Request) -> Response:
    """Return all glossaries with one dictionary, without their entries, oldest first."""
    found = [info for info in _glossaries(request).all() if len(info.dictionaries) == 1]
    return json_response({"glossaries": list(map(_single, found))})


@router.get(
    "/v2/glossaries/{glossary_id}",
    responses={**answers("Glossary", _GLOSSARY), **DEEPL.responses(404, 503)},
)
def one(request: Request, glossary_id: str) -> Response:
    """Return one glossary without its entries."""
    return json_response(_single(_glossaries(request).info(glossary_id)))


@router.get(
    "/v2/glossaries/{glossary_id}/entries",
    responses={200: {"content": {"text/tab-separated-values": {}}}, **DEEPL.responses(404, 503)},
)
def entries(request: Request, glossary_id: str) -> Response:
    """Return the entries, one term and its translation a line."""
    store = _glossaries(request)
    lines = _lines(store.dictionary(store.info(glossary_id).only.id))
    return PlainTextResponse(lines, media_type="text/tab-separated-values")


@router.delete("/v2/glossaries/{glossary_id}", status_code=204, responses=DEEPL.responses(404, 503))
def delete(request: Request, glossary_id: str) -> None:
    """Delete a glossary."""
    _glossaries(request).delete(glossary_id)


@router.post(
    "/v3/glossaries",
    status_code=201,
    openapi_extra=body_of(MultilingualFields),
    responses={**answers("MultilingualGlossary", _MULTILINGUAL, status=201), **DEEPL.responses(400, 413, 500, 503)},
)
async def create_multilingual(request: Request) -> Response:
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
    return json_response(_several(await run_on_glossary_thread(_glossaries(request).create, name, dictionaries)), 201)


@router.get(
    "/v3/glossaries",
    responses={**answers("MultilingualGlossaries", {"glossaries": [_MULTILINGUAL]}), **DEEPL.responses(503)},
)
def all_multilingual(request: Request) -> Response:
    """Return all glossaries without their entries, oldest first."""
    return json_response({"glossaries": list(map(_several, _glossaries(request).all()))})


@router.get(
    "/v3/glossaries/{glossary_id}",
    responses={**answers("MultilingualGlossary", _MULTILINGUAL), **DEEPL.responses(404, 503)},
)
def one_multilingual(request: Request, glossary_id: str) -> Response:
    """Return one glossary without its entries."""
    return json_response(_several(_glossaries(request).info(glossary_id)))


@router.get(
    "/v3/glossaries/{glossary_id}/entries",
    responses={
        **answers("GlossaryEntries", {"dictionaries": [_entries(("en", "de"), "tea\tTee")]}),
        **DEEPL.responses(400, 404, 503),
    },
)
def multilingual_entries(request: Request, glossary_id: str, source_lang: str, target_lang: str) -> Response:
    """Return the entries of the dictionary from and to these languages."""
    pair = language_pair(source_lang, target_lang)
    store = _glossaries(request)
    lines = _lines(store.dictionary(store.info(glossary_id).dictionary(pair).id))
    return json_response({"dictionaries": [_entries(pair, lines)]})


@router.patch(
    "/v3/glossaries/{glossary_id}",
    openapi_extra=body_of(ChangeFields),
    responses={**answers("MultilingualGlossary", _MULTILINGUAL), **DEEPL.responses(400, 404, 413, 500, 503)},
)
async def change(request: Request, glossary_id: str) -> Response:
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
            await run_on_glossary_thread(partial(glossaries.put, keeps=True), glossary_id, pair, its_entries)
    return json_response(_several(await asyncio.to_thread(glossaries.info, glossary_id)))


@router.put(
    "/v3/glossaries/{glossary_id}/dictionaries",
    openapi_extra=body_of(DictionaryFields),
    responses={**answers("GlossaryDictionary", _DICTIONARY), **DEEPL.responses(400, 404, 413, 500, 503)},
)
async def replace(request: Request, glossary_id: str) -> Response:
    """Replace the dictionary of a pair of languages, or add it."""
    # Only this dictionary is replaced, so a row of another pair is an error.
    pair, found = await _dictionary(request, await _body(request), takes_others=False)
    info = await run_on_glossary_thread(_glossaries(request).put, glossary_id, pair, found[pair])
    return json_response(_of_pair(info))


@router.delete("/v3/glossaries/{glossary_id}/dictionaries", status_code=204, responses=DEEPL.responses(400, 404, 503))
def delete_dictionary(request: Request, glossary_id: str, source_lang: str, target_lang: str) -> None:
    """Delete the dictionary of a pair of languages."""
    _glossaries(request).delete_dictionary(glossary_id, language_pair(source_lang, target_lang))


@router.delete("/v3/glossaries/{glossary_id}", status_code=204, responses=DEEPL.responses(404, 503))
def delete_multilingual(request: Request, glossary_id: str) -> None:
    """Delete a glossary with all its dictionaries."""
    _glossaries(request).delete(glossary_id)


def _glossaries(request: Request) -> GlossaryStore:
    return server_state(request).stored_glossaries()


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


def glossary_pairs(model_router: Router) -> list[tuple[str, str]]:
    """Return the pairs of languages that have a model of their own."""
    direct = (route for route in model_router.routes if route.pivot is None)
    return sorted({language_pair(route.source, route.target) for route in direct})
