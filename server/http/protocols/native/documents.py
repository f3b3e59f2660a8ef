"""`/v1/documents`: submit, inspect, download and delete document translations."""

from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Request, Response, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, AliasPath, Field

from server.documents.formats.option_fields import FormatFields
from server.documents.jobs import JobStatus
from server.documents.text_translation import document_translation
from server.http.protocols.native.fields import MAX_TAG_CHARACTERS, AnswerModel, IfAny
from server.http.requests.admission import charged
from server.http.requests.memories import named_memory
from server.http.responses.download import download
from server.http.responses.errors import error_responses
from server.http.state import ServerState, server_state
from server.interface.decoding_options import (
    MAX_BEAM_SIZE,
    MAX_LENGTH_PENALTY,
    DecodingOptions,
    KeepOrTranslate,
    OnLowQuality,
)
from server.translation.types import KeepReason, MemoryUse, TranslationRequest

router = APIRouter(prefix="/v1/documents", tags=["documents"])

PATH = router.prefix

Server = Annotated[ServerState, Depends(server_state)]


_if_any = AfterValidator(lambda part: part if part is not None and any(part.model_dump().values()) else None)
_Count = Annotated[int | None, IfAny]


class DocumentDetails(AnswerModel):
    """Sentences of a document that need attention, as far as it is translated."""

    kept: Annotated[dict[KeepReason, int] | None, IfAny] = Field(
        None, description="numbers of texts that were not translated"
    )
    repaired: _Count = Field(
        None, description="number of sentences that were decoded again, because their translations lacked something"
    )
    incomplete: _Count = Field(None, description="number of sentences whose translation lacks something")
    numbers_differ: _Count = Field(None, description="number of sentences with a lost or an invented number")
    low_quality: _Count = Field(None, description="number of sentences with a quality below `min_quality`")
    quality: float | None = Field(None, ge=0, le=1, description="mean quality, weighted by the tokens of the texts")
    memory: Annotated[dict[MemoryUse, int] | None, IfAny] = Field(
        None, description="numbers of sentences by their translation memory"
    )


class CaptionCounts(AnswerModel):
    """Captions of subtitles that one sentence runs over, and captions that take longer to read than they are shown."""

    joined: int = Field(validation_alias="captions_joined", description="captions translated together with others")
    cuts: int = Field(
        validation_alias="caption_cuts", description="places at which a translation was divided into captions again"
    )
    too_fast: int = Field(
        validation_alias="captions_too_fast", description="captions with more characters a second than `reading_speed`"
    )


class ErrorBody(AnswerModel):
    """Stable code for programs, message for people."""

    code: str
    message: str = Field(validation_alias=AliasPath("args", 0))


class DocumentAnswer(AnswerModel):
    """Progress of a document. A unit is one of its different texts."""

    id: str
    name: str
    status: JobStatus
    progress: float = Field(ge=0, le=1, description="translated share")
    units_done: int
    num_units: int = Field(description="0 until the document is read")
    num_characters: int
    num_texts: int = Field(description="texts found: paragraphs, cells, cues or values; 0 until the document is read")
    num_translated: int | None = Field(
        None,
        validation_alias=AliasPath("report", "counts", "num_translated"),
        description="texts that differ from their source, of a document that is done",
    )
    captions: Annotated[CaptionCounts | None, _if_any] = Field(
        None,
        validation_alias=AliasPath("report", "counts"),
        description="of subtitles, if there is anything to report",
    )
    seconds_remaining: float | None = Field(None, description="estimate during the translation")
    error: ErrorBody | None = Field(None, description="cause, if the status is error")
    details: Annotated[DocumentDetails | None, _if_any] = Field(
        None, validation_alias="report", description="if there is anything to report"
    )


class DocumentForm(FormatFields):
    """A document, its languages and options, which have the meaning that they have in `/v1/translate`."""

    file: UploadFile
    source: str | None = Field(None, max_length=MAX_TAG_CHARACTERS)
    target: str | None = Field(None, max_length=MAX_TAG_CHARACTERS)
    beam_size: int | None = Field(None, ge=1, le=MAX_BEAM_SIZE)
    length_penalty: float = Field(1.0, ge=-MAX_LENGTH_PENALTY, le=MAX_LENGTH_PENALTY, allow_inf_nan=False)
    if_already_target: KeepOrTranslate | None = None
    repair: bool | None = None
    return_quality: bool = False
    min_quality: float | None = Field(None, ge=0, le=1, allow_inf_nan=False)
    on_low_quality: OnLowQuality | None = None
    memory_id: str | None = Field(None, max_length=64)
    memory_threshold: int | None = Field(None, ge=0, le=100)


@router.post(
    "", status_code=202, response_model_exclude_none=True, responses=error_responses(400, 413, 415, 422, 429, 503)
)
async def submit(
    form: Annotated[DocumentForm, Form(media_type="multipart/form-data")],
    request: Request,
    response: Response,
    server: Server,
) -> DocumentAnswer:
    """Submit a document as multipart/form-data. `format`, or the extension of its name, selects the format.

    `details` of the progress has numbers of sentences.

    The document is translated in the background; `Location` is the address of its progress.
    """
    service, _ = server.accept()
    memory = await named_memory(request, form.memory_id, form.memory_threshold)
    asked = TranslationRequest((), "", "", DecodingOptions.of(form), memory=memory)
    into = service.check(asked, form.source, form.target)
    translate = document_translation(service, asked, form.source, form.target, server.metrics.translated)
    name, content = _result_name(form.file.filename or "", into), form.file.file
    job = await server.documents.submit(name, content, charged(request, translate), form.options(into), form.format)
    response.headers["Location"] = f"{PATH}/{job.id}"
    return DocumentAnswer.model_validate(job)


@router.get("/{document_id}", response_model_exclude_none=True, responses=error_responses(404))
async def status(document_id: str, server: Server) -> DocumentAnswer:
    """Return the progress of the document."""
    return DocumentAnswer.model_validate(server.documents.get(document_id))


@router.get(
    "/{document_id}/content",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/octet-stream": {}}, "description": "The translated document."},
        **error_responses(404, 409),
    },
)
async def content(document_id: str, server: Server) -> StreamingResponse:
    """Return the translated document, in the format of the original."""
    return download(server.documents.open(document_id))


@router.delete("/{document_id}", status_code=204, response_class=Response, responses=error_responses(404))
async def delete(document_id: str, server: Server) -> None:
    """Cancel the translation of the document, and delete it."""
    await server.documents.delete(document_id)


def _result_name(name: str, target: str) -> str:
    """Return the name of the translation: `letter.de.docx` for `letter.docx`."""
    path = PurePath(name)
    return f"{path.stem}.{target}{path.suffix}" if path.suffix else name
