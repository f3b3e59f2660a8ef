"""LibreTranslate-compatible: a document in, the address of its translation out."""

from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from server.documents.formats.options import FormatOptions
from server.documents.jobs import JobStatus
from server.documents.text_translation import document_translation
from server.http.protocols.libretranslate.texts import check_languages, libretranslate_responses, required_tag
from server.http.requests.api_keys import charged
from server.http.requests.disconnect import unless_disconnected
from server.http.requests.memories import default_memory
from server.http.requests.openapi_bodies import body_of
from server.http.requests.parameters import read_parameters
from server.http.responses.download import download
from server.http.state import server_state
from server.interface.errors import EngineFailed, InvalidRequest, UnsupportedFormat
from server.translation.types import TranslationRequest

router = APIRouter(tags=["LibreTranslate-compatible"])

PATH = "/translate_file"


class FileFields(BaseModel):
    """A document, and its languages."""

    file: str = Field(json_schema_extra={"format": "binary"})
    source: str = Field(description="language of the document, or auto")
    target: str = Field(description="language to translate into")
    api_key: str | None = None


class FileAnswer(BaseModel):
    """Where the translation is to be fetched."""

    translatedFileUrl: str  # noqa: N815 - the protocol's name


@router.post(
    PATH,
    openapi_extra=body_of(FileFields, "multipart/form-data"),
    responses=libretranslate_responses(400, 413, 429, 500, 503, 504),
)
async def translate_file(request: Request) -> FileAnswer:
    """Translate a document; the answer comes when it is done. /v1/documents does not keep you waiting."""
    server = server_state(request)
    sent = await read_parameters(request, 50)
    file = sent.file("file")
    if file is None:
        raise InvalidRequest("Invalid request: missing file parameter")
    source, target = required_tag(sent, "source"), required_tag(sent, "target")
    interpreter, catalogue = server.accept()
    check_languages(catalogue, source, target)
    if not file.filename or not file.size:
        raise InvalidRequest("Invalid request: empty file")
    asked = TranslationRequest((), "", "", memory=default_memory(request))
    translate = document_translation(
        interpreter, asked, source, target, lambda done: server.metrics.translated(done.result)
    )
    try:
        options = FormatOptions(language=interpreter.check(asked, source, target))
        job = await server.documents.submit(file.filename, file.file, charged(request, translate), options)
    except UnsupportedFormat as error:
        raise InvalidRequest("Invalid request: file format not supported") from error
    try:
        job = await unless_disconnected(request, server.documents.wait(job.id))
    except BaseException:
        await server.documents.delete(job.id)
        raise
    if job.status is not JobStatus.DONE:
        await server.documents.delete(job.id)
        raise job.error or EngineFailed("the document could not be translated")
    # url_for writes a name as it is, and names have blanks, "#" and letters in them.
    name = quote(f"{job.id}.{job.name}", safe="")
    return FileAnswer(translatedFileUrl=str(request.url_for("download_file", name=name)))


@router.get(
    "/download_file/{name}",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The translated document."},
        **libretranslate_responses(404, 409),
    },
)
async def download_file(request: Request, name: str) -> StreamingResponse:
    """A translated document; it is kept for a while."""
    return download(server_state(request).documents.open(name.partition(".")[0]))
