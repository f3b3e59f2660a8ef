"""DeepL-compatible routes for glossaries, which are stored until deleted."""

import asyncio
from datetime import datetime

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import BaseModel, Field

from server.http.protocols.deepl.errors import deepl_responses
from server.http.protocols.deepl.fields import one_of
from server.http.protocols.deepl.glossary_entries import SEPARATORS, language_pair, parse_entries
from server.http.requests.openapi_bodies import body_of
from server.http.requests.parameters import read_parameters
from server.http.state import server_state
from server.interface.errors import InvalidRequest
from server.translation.execution import run_on_glossary_thread
from server.translation.glossaries import GlossaryInfo
from server.translation.router import Router

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
    sent = await read_parameters(request, 50)
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
