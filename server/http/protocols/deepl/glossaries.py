"""DeepL-compatible routes for glossaries, which are stored until deleted, and the notations of their entries."""

import asyncio
import csv
import io
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel, Field

from server.http.protocols.deepl.errors import deepl_responses
from server.http.protocols.deepl.fields import language_code, one_of
from server.http.requests.parameters import body_of, read_parameters
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.translation.execution import run_on_glossary_thread
from server.translation.glossaries import GlossaryInfo, Pair
from server.translation.router import Router

Dictionaries = dict[Pair, dict[str, str]]
"""Entries of each pair of languages."""

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


router = APIRouter(prefix="/v2", tags=["DeepL-compatible"])


class GlossaryFields(BaseModel):
    """Name and languages of a glossary.

    Each line of `entries` has a term and its translation; the languages of both may follow.
    """

    name: str
    source_lang: str
    target_lang: str
    entries: str
    entries_format: str = Field("tsv", description="tsv or csv")


class GlossaryAnswer(BaseModel):
    """A stored glossary."""

    glossary_id: str
    name: str
    ready: bool = True
    source_lang: str
    target_lang: str
    creation_time: datetime
    entry_count: int


class GlossariesAnswer(BaseModel):
    """All glossaries, oldest first."""

    glossaries: list[GlossaryAnswer]


class PairAnswer(BaseModel):
    """Language pair for which a glossary can be created."""

    source_lang: str
    target_lang: str


class PairsAnswer(BaseModel):
    """All language pairs for glossaries."""

    supported_languages: list[PairAnswer]


@router.get("/glossary-language-pairs", responses=deepl_responses(503))
async def pairs(request: Request) -> PairsAnswer:
    """Return the pairs with a model of their own. Terms cannot be preserved through a pivot language."""
    _, model_router = server_state(request).accept()
    return PairsAnswer(
        supported_languages=[
            PairAnswer(source_lang=source, target_lang=target) for source, target in glossary_pairs(model_router)
        ]
    )


@router.post(
    "/glossaries",
    status_code=201,
    openapi_extra=body_of(GlossaryFields),
    responses=deepl_responses(400, 413, 500, 503),
)
async def create(request: Request) -> GlossaryAnswer:
    """Store a glossary."""
    server = server_state(request)
    sent = await read_parameters(request)
    _, model_router = server.accept()
    texts = {}
    for name in ("name", "source_lang", "target_lang", "entries"):
        texts[name] = sent.text(name) or ""
        if not texts[name]:
            raise InvalidRequest(f"Parameter '{name}' not specified.")
    pair = language_pair(texts["source_lang"], texts["target_lang"])
    if pair not in glossary_pairs(model_router):
        raise InvalidRequest("Unsupported glossary source language and target language.")
    separator = SEPARATORS[one_of(sent, "entries_format", tuple(SEPARATORS)) or "tsv"]
    found = await run_on_glossary_thread(parse_entries, texts["entries"], separator, pair)
    create_glossary = server.stored_glossaries().create
    return _response(await run_on_glossary_thread(create_glossary, texts["name"], *pair, found[pair]))


@router.get("/glossaries", responses=deepl_responses(503))
async def all_glossaries(request: Request) -> GlossariesAnswer:
    """Return all glossaries without their entries."""
    infos = await asyncio.to_thread(server_state(request).stored_glossaries().all)
    return GlossariesAnswer(glossaries=[_response(info) for info in infos])


@router.get("/glossaries/{glossary_id}", responses=deepl_responses(404, 503))
async def one(request: Request, glossary_id: str) -> GlossaryAnswer:
    """Return one glossary without its entries."""
    return _response(await asyncio.to_thread(server_state(request).stored_glossaries().info, glossary_id))


@router.get(
    "/glossaries/{glossary_id}/entries",
    responses={200: {"content": {"text/tab-separated-values": {}}}, **deepl_responses(404, 503)},
)
async def entries(request: Request, glossary_id: str) -> Response:
    """Return the entries, one term and its translation a line."""
    glossary = await asyncio.to_thread(server_state(request).stored_glossaries().glossary, glossary_id)
    lines = "\n".join(f"{term}\t{translation}" for term, translation in glossary.entries.items())
    return PlainTextResponse(lines, media_type="text/tab-separated-values")


@router.delete("/glossaries/{glossary_id}", status_code=204, responses=deepl_responses(404, 503))
async def delete(request: Request, glossary_id: str) -> None:
    """Delete a glossary."""
    await asyncio.to_thread(server_state(request).stored_glossaries().delete, glossary_id)


def glossary_pairs(model_router: Router) -> list[tuple[str, str]]:
    """Return the pairs of languages that have a model of their own."""
    direct = (route for route in model_router.routes if route.pivot is None)
    return sorted({language_pair(route.source, route.target) for route in direct})


def _response(info: GlossaryInfo) -> GlossaryAnswer:
    return GlossaryAnswer(
        glossary_id=info.id,
        name=info.name,
        source_lang=info.source,
        target_lang=info.target,
        creation_time=info.created,
        entry_count=info.num_entries,
    )
