"""DeepL-compatible: documents, handed in, asked after, and fetched once."""

import hashlib
import secrets
from typing import Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from server.documents.formats.options import FormatOptions
from server.documents.jobs import DocumentJob, JobStatus
from server.documents.text_translation import document_translation
from server.http.protocols.deepl.errors import deepl_responses
from server.http.protocols.deepl.fields import formality_of, glossary_of, source_tag, target_tag, warn_of_ignored
from server.http.requests.api_keys import charged
from server.http.requests.openapi_bodies import body_of
from server.http.requests.parameters import Parameters, closes_forms, read_parameters
from server.http.responses.download import download
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

router = APIRouter(prefix="/v2/document", tags=["DeepL-compatible"], dependencies=[Depends(closes_forms)])

PATH = router.prefix
_ID_CHARACTERS = 32


class DocumentFields(BaseModel):
    """A document, and its languages."""

    file: str = Field(json_schema_extra={"format": "binary"})
    target_lang: str
    source_lang: str | None = None
    filename: str | None = Field(None, description="file name with the right extension")
    output_format: str | None = Field(None, description="that of the document, if any")
    formality: str | None = None
    glossary_id: str | None = None


class DocumentHandle(BaseModel):
    """Id and key of a document, for the requests that follow."""

    document_id: str
    document_key: str


class KeyFields(BaseModel):
    """The key that came with the document's id."""

    document_key: str


class DocumentStatus(BaseModel):
    """How far the document is."""

    document_id: str
    status: Literal["queued", "translating", "done", "error"]
    seconds_remaining: int | None = None
    billed_characters: int | None = None
    error_message: str | None = None


@router.post(
    "",
    openapi_extra=body_of(DocumentFields, "multipart/form-data"),
    responses=deepl_responses(400, 413, 429, 500, 503),
)
async def submit(request: Request, response: Response) -> DocumentHandle:
    """Hand in a document; it is translated in the background."""
    server = server_state(request)
    sent = await read_parameters(request, 50)
    file = sent.file("file")
    if file is None or not file.size:
        raise InvalidRequest("Invalid file data.")
    warn_of_ignored(sent, response, {*DocumentFields.model_fields, "auth_key", "enable_beta_languages", "glossary_ids"})
    interpreter, catalogue = server.accept()
    source, target = source_tag(sent, catalogue), _target(sent, server)
    formality = formality_of(sent, target)
    name = sent.text("filename") or file.filename or ""
    if (wanted := sent.text("output_format")) and not name.lower().endswith(f".{wanted.lower().lstrip('.')}"):
        raise InvalidRequest("output_format not supported.")
    glossary = await glossary_of(sent, server, source, target)
    asked = TranslationRequest((), "", "", glossary=glossary, formality=formality)
    translate = document_translation(
        interpreter, asked, source or AUTO, target, lambda done: server.metrics.translated(done.result)
    )
    try:
        options = FormatOptions(language=target)
        job = await server.documents.submit(name, file.file, charged(request, translate), options)
    except (UnsupportedFormat, InvalidDocument) as error:
        raise InvalidRequest(f"Invalid file data. {error}") from error
    return DocumentHandle(document_id=_public_id(job), document_key=_key(job))


@router.post(
    "/{document_id}",
    response_model_exclude_none=True,
    openapi_extra=body_of(KeyFields),
    responses=deepl_responses(400, 404, 413, 500),
)
async def status(request: Request, document_id: str) -> DocumentStatus:
    """How far the document is."""
    job = await _job(request, document_id)
    remaining = {JobStatus.DONE: 0.0, JobStatus.TRANSLATING: job.seconds_remaining or 1.0}.get(job.status)
    return DocumentStatus(
        document_id=_public_id(job),
        status=job.status.value,
        seconds_remaining=None if remaining is None else round(remaining),
        billed_characters=job.num_characters if job.status is JobStatus.DONE else None,
        error_message=None if job.error is None else str(job.error),
    )


@router.post(
    "/{document_id}/result",
    response_class=StreamingResponse,
    openapi_extra=body_of(KeyFields),
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The translated document."},
        **deepl_responses(400, 404, 413, 500, 503),
    },
)
async def result(request: Request, document_id: str) -> StreamingResponse:
    """The translated document; it is forgotten then."""
    server = server_state(request)
    job = await _job(request, document_id)
    if job.status is not JobStatus.DONE:
        raise DocumentNotReady("Document translation is not done")
    content = server.documents.open(job.id)
    await server.documents.delete(job.id)  # what is open stays readable
    server.num_characters_billed += job.num_characters
    return download(content)


async def _job(request: Request, document_id: str) -> DocumentJob:
    sent = await read_parameters(request, 50)
    key = sent.text("document_key") or ""
    try:
        job = server_state(request).documents.get(key[:_ID_CHARACTERS])
    except UnknownDocument as error:
        raise UnknownDocument("Document not found") from error
    given, expected = f"{document_id} {key}", f"{_public_id(job)} {_key(job)}"
    if not secrets.compare_digest(given.encode(), expected.encode()):
        raise UnknownDocument("Document not found")
    return job


def _key(job: DocumentJob) -> str:
    """Return the document's key: its id in the store, and 128 bits of its key there. Clients expect 64 characters."""
    return job.id + job.key[:_ID_CHARACTERS]


def _public_id(job: DocumentJob) -> str:
    """Return the document's id in this protocol, a hash. The other protocols need the store's id only."""
    return hashlib.sha256(job.id.encode()).hexdigest()[:_ID_CHARACTERS]


def _target(sent: Parameters, server: ServerState) -> str:
    _, catalogue = server.accept()
    source, target = sent.text("source_lang"), sent.text("target_lang")
    if source and target and match_language(source, [target]):
        raise InvalidRequest("Source and target language are equal.")
    return target_tag(sent, catalogue)
