"""DeepL-compatible routes for documents: submit, read the status, download once."""

import hashlib
import secrets
from dataclasses import replace
from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from server.documents.formats.options import FormatOptions
from server.documents.formats.registry import format_of
from server.documents.jobs import DocumentJob, JobStatus
from server.documents.text_translation import DetectedBlocks, document_translation
from server.http.protocols.deepl.fields import (
    DEEPL,
    formality_of,
    glossary_of,
    memory_of,
    source_tag,
    target_tag,
    warn_of_ignored,
)
from server.http.requests.admission import charged
from server.http.requests.parameters import Parameters, body_of, read_parameters
from server.http.responses.download import download
from server.http.responses.examples import answers
from server.http.responses.large_json import json_response
from server.http.state import ServerState, server_state
from server.interface.errors import (
    DocumentNotReady,
    InvalidDocument,
    InvalidRequest,
    UnknownDocument,
    UnsupportedFormat,
)
from server.text.language_tags import match_language
from server.translation.service import AUTO
from server.translation.types import TranslationRequest

router = APIRouter(prefix="/v2/document", tags=["DeepL-compatible"])

PATH = router.prefix
_ID_CHARACTERS = 32
_EQUAL_LANGUAGES = "Source and target language are equal."


class DocumentFields(BaseModel):
    """Document, languages and options."""

    file: str = Field(json_schema_extra={"format": "binary"})
    target_lang: str
    source_lang: str | None = None
    filename: str | None = Field(None, description="file name with the right extension")
    output_format: str | None = Field(None, description="the format of the translation; no other is supported")
    formality: str | None = None
    glossary_id: str | None = None
    translation_memory_id: str | None = None
    translation_memory_threshold: int | None = None


class KeyFields(BaseModel):
    """Key of a document."""

    document_key: str


@router.post(
    "",
    openapi_extra=body_of(DocumentFields, "multipart/form-data"),
    responses=answers("DocumentHandle", {"document_id": "0C", "document_key": "1D"})
    | DEEPL.responses(400, 413, 429, 500, 503),
)
async def submit(request: Request) -> Response:
    """Submit a document; it is translated in the background."""
    server = server_state(request)
    sent = await read_parameters(request)
    file = sent.file("file")
    if file is None or not file.size:
        raise InvalidRequest("Invalid file data.")
    service, model_router = server.accept()
    source, target = source_tag(sent, model_router), _target(sent, server)
    formality = formality_of(sent, target)
    name = sent.text("filename") or file.filename or ""
    glossary = await glossary_of(sent, server, source, target)
    memory = await memory_of(request, sent)
    options = TranslationRequest((), "", "", glossary=glossary, formality=formality, memory=memory)
    blocks = DetectedBlocks()
    translate = document_translation(service, options, source or AUTO, target, server.metrics.translated, blocks)
    translate = replace(translate, finish=partial(_check_source_language, blocks))
    wanted = (sent.text("output_format") or "").lower().removeprefix(".")
    try:
        # A client of a translated PDF asks for the Word document that it is.
        if not format_of(name).result_name(name).lower().endswith(wanted and f".{wanted}"):
            raise InvalidRequest("output_format not supported.")
        job = await server.documents.submit(
            name, file.file, charged(request, translate), FormatOptions(language=target)
        )
    except (UnsupportedFormat, InvalidDocument) as error:
        raise InvalidRequest(f"Invalid file data. {error}") from error
    response = json_response({"document_id": _public_id(job), "document_key": _key(job)})
    warn_of_ignored(sent, response, {*DocumentFields.model_fields, "auth_key", "enable_beta_languages", "glossary_ids"})
    return response


@router.post(
    "/{document_id}",
    openapi_extra=body_of(KeyFields),
    responses=answers(
        "DocumentStatus",
        {
            "document_id": "0C",
            "status": "done",
            "seconds_remaining": 0,
            "billed_characters": 12,
            "error_message": "the file cannot be read",
        },
        optional=["seconds_remaining", "billed_characters", "error_message"],
    )
    | DEEPL.responses(400, 404, 413, 500),
)
async def status(request: Request, document_id: str) -> Response:
    """Return the status of a document: queued, translating, done or error."""
    job = await _job(request, document_id)
    answer: dict[str, object] = {"document_id": _public_id(job), "status": job.status.value}
    remaining = {JobStatus.DONE: 0.0, JobStatus.TRANSLATING: job.seconds_remaining or 1.0}.get(job.status)
    if remaining is not None:
        answer["seconds_remaining"] = round(remaining)
    if job.status is JobStatus.DONE:
        answer["billed_characters"] = job.num_characters
    if job.error is not None:
        answer["error_message"] = str(job.error)
    return json_response(answer)


@router.post(
    "/{document_id}/result",
    response_class=StreamingResponse,
    openapi_extra=body_of(KeyFields),
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The translated document."},
        **DEEPL.responses(400, 404, 413, 500, 503),
    },
)
async def result(request: Request, document_id: str) -> StreamingResponse:
    """Return the translated document and delete it."""
    server = server_state(request)
    job = await _job(request, document_id)
    if job.status is not JobStatus.DONE:
        raise DocumentNotReady("Document translation is not done")
    content = server.documents.open(job.id)
    await server.documents.delete(job.id)  # the open file stays readable
    server.num_characters_billed += job.num_characters
    return download(content)


def _check_source_language(blocks: DetectedBlocks) -> None:
    if blocks.are_in_target_language:
        raise InvalidRequest(_EQUAL_LANGUAGES)


async def _job(request: Request, document_id: str) -> DocumentJob:
    sent = await read_parameters(request)
    key = sent.text("document_key") or ""
    try:
        job = server_state(request).documents.get(key[:_ID_CHARACTERS].lower())
    except UnknownDocument as error:
        raise UnknownDocument("Document not found") from error
    given, expected = f"{document_id} {key}".upper(), f"{_public_id(job)} {_key(job)}"
    if not secrets.compare_digest(given.encode(), expected.encode()):
        raise UnknownDocument("Document not found")
    return job


def _key(job: DocumentJob) -> str:
    """Return the document's key: its id in the store, and 128 bits of its key there.

    Clients expect 64 hexadecimal digits with capitals.
    """
    return (job.id + job.key[:_ID_CHARACTERS]).upper()


def _public_id(job: DocumentJob) -> str:
    """Return the document's id in this protocol, a hash. The other protocols need the store's id only."""
    return hashlib.sha256(job.id.encode()).hexdigest()[:_ID_CHARACTERS].upper()


def _target(sent: Parameters, server: ServerState) -> str:
    _, model_router = server.accept()
    source, target = sent.text("source_lang"), sent.text("target_lang")
    if source and target and match_language(source, [target]):
        raise InvalidRequest(_EQUAL_LANGUAGES)
    return target_tag(sent, model_router)
