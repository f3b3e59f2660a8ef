"""DeepL-compatible routes for translation memories; creating, changing and sharing them are additions."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from server.http.protocols.deepl.fields import DEEPL
from server.http.requests.memories import stored_memories, viewer_of
from server.http.state import server_state
from server.interface.errors import InvalidRequest, NotFound
from server.memory.jobs import UPLOAD_SECONDS, Job, Jobs
from server.memory.store import MAX_NAME_CHARACTERS, Pair, Segment
from server.text.unicode_text import replace_lone_surrogates

router = APIRouter(prefix="/v3/translation_memories", tags=["DeepL-compatible"])

PATH = router.prefix
UPLOAD_PATH, DOWNLOAD_PATH = f"{PATH}/upload", f"{PATH}/download"
_MAX_SEGMENTS = 1000  # in one request
_MIN_FILTER_CHARACTERS = 2

Tag = Annotated[str, Field(min_length=2, max_length=64, pattern=r"^[\w-]+$")]


class MemoryAnswer(BaseModel):
    """A translation memory without its segments."""

    model_config = ConfigDict(from_attributes=True)

    translation_memory_id: str = Field(validation_alias="id")
    name: str
    source_language: str = Field(validation_alias="source")
    target_languages: list[str] = Field(validation_alias="targets")
    segment_count: int = Field(validation_alias="num_segments")
    creation_time: datetime = Field(validation_alias="created")
    updated_time: datetime = Field(validation_alias="changed")
    use_by_default: bool = Field(
        validation_alias="is_default", description="whether every request of the API key uses it; an addition of Kvasir"
    )


class MemoriesAnswer(BaseModel):
    """A page of translation memories, the oldest first."""

    translation_memories: list[MemoryAnswer]
    total_count: int


class MemoryFields(BaseModel):
    """Name and languages of a new memory."""

    name: str
    source_language: Tag
    target_languages: list[Tag] = Field(min_length=1, max_length=100)


class ChangeFields(BaseModel):
    """What to change of a memory."""

    name: str | None = None
    use_by_default: bool | None = Field(None, description="use it for every request of this API key, in all protocols")
    shared_with: list[Annotated[str, Field(max_length=64)]] | None = Field(
        None, max_length=1000, description="ids of API keys that may read and change its segments; * lets all read them"
    )


class TargetAnswer(BaseModel):
    """A translation of a segment."""

    target_segment_id: str
    target_language: str
    target_text: str
    creation_time: datetime
    updated_time: datetime


class SegmentAnswer(BaseModel):
    """A segment. `updated_by` is the API key, or whom the imported file names."""

    source_segment_id: str
    source_text: str
    targets: list[TargetAnswer]
    creation_time: datetime
    updated_time: datetime
    updated_by: str | None = None
    context: str | None = None


class SegmentsAnswer(BaseModel):
    """A page of segments."""

    segments: list[SegmentAnswer]
    segment_count: int
    next_page_cursor: str | None = None


class TargetFields(BaseModel):
    """A translation."""

    target_language: Tag
    target_text: str


class SegmentFields(BaseModel):
    """A source text, and its translations."""

    source_text: str
    targets: list[TargetFields] = Field(min_length=1, max_length=100)
    context: str | None = None


class SegmentsFields(BaseModel):
    """Segments to add; translations of source texts that are there are replaced."""

    segments: list[SegmentFields] = Field(min_length=1, max_length=_MAX_SEGMENTS)


class SourceFile(BaseModel):
    """The file that will be uploaded."""

    file_name: str = Field(min_length=1, max_length=100)
    content_type: str = Field("application/xml", max_length=127)
    content_length: int = Field(gt=0)


class ImportParameters(BaseModel):
    """Name of the memory; languages of .tsv and .po files, which do not name them."""

    display_name: str | None = Field(default=None, max_length=MAX_NAME_CHARACTERS)
    source_language: Tag | None = None
    target_language: Tag | None = None


class ImportFields(BaseModel):
    """An import."""

    source_file: SourceFile
    parameters: ImportParameters = ImportParameters()


class ImportAnswer(BaseModel):
    """Where to upload the file with PUT, and until when."""

    job_id: str
    upload_url: str
    expires_at: datetime


class ExportParameters(BaseModel):
    """The exported memory."""

    translation_memory_id: str


class ExportAnswer(BaseModel):
    """An export that was started, or an earlier one of the same segments."""

    job_id: str
    parameters: ExportParameters


JobStatus = Literal["awaiting_input", "processing", "completed", "downloaded", "failed", "expired"]


class JobResult(BaseModel):
    """Status and outcome of a job."""

    status: JobStatus
    status_metadata: dict[str, str] | None = None
    download_url: str | None = None
    error: dict[str, str] | None = None
    translation_memory_id: str | None = None
    skipped_segment_count: int | None = None


class JobAnswer(BaseModel):
    """An import or export."""

    job_id: str
    operation: Literal["import", "export"]
    product: str = "translation_memory"
    creation_time: datetime
    updated_time: datetime
    parameters: dict[str, str]
    source_file: SourceFile | None = None
    results: list[JobResult]


@router.get("", responses=DEEPL.responses(400))
def all_memories(
    request: Request,
    page: Annotated[int, Query(ge=0, le=10**9)] = 0,
    page_size: Annotated[int, Query(ge=1, le=25)] = 25,
) -> MemoriesAnswer:
    """Return a page of the memories that the API key sees."""
    store = stored_memories(request)
    found, total = store.memories(viewer_of(request), page * page_size, page_size)
    return MemoriesAnswer(translation_memories=list(map(MemoryAnswer.model_validate, found)), total_count=total)


@router.post("", status_code=201, responses=DEEPL.responses(400))
def create(request: Request, fields: MemoryFields) -> MemoryAnswer:
    """Create an empty memory. DeepL creates them by imports only."""
    name, source, targets = replace_lone_surrogates(fields.name), fields.source_language, fields.target_languages
    return MemoryAnswer.model_validate(stored_memories(request).create(viewer_of(request), name, source, targets))


@router.post("/import", status_code=202, responses=DEEPL.responses(400))
def begin_import(request: Request, fields: ImportFields) -> ImportAnswer:
    """Create an import, whose file (.tmx, .tsv or .po) is then uploaded to `upload_url`."""
    file, parameters = fields.source_file, fields.parameters
    limit = server_state(request).settings.max_memory_megabytes * 1_000_000
    if file.content_length > limit:
        raise InvalidRequest(f"source_file.content_length must be at most {limit}. Given: {file.content_length}")
    options = {
        "display_name": None if parameters.display_name is None else replace_lone_surrogates(parameters.display_name),
        "source": parameters.source_language,
        "target": parameters.target_language,
        "content_type": file.content_type,
        "content_length": file.content_length,
    }
    name = replace_lone_surrogates(file.file_name)
    job = _jobs(request).create_import(viewer_of(request), name, options)
    expires = datetime.fromtimestamp(job.created + UPLOAD_SECONDS, UTC)
    return ImportAnswer(job_id=job.id, upload_url=_url(request, "upload_memory", job), expires_at=expires)


@router.put("/upload", name="upload_memory", status_code=204, responses=DEEPL.responses(400, 404, 413))
async def upload(request: Request, job: str, key: str) -> None:
    """Receive the file of an import; its `upload_url` has the key, so that no API key is needed."""
    jobs = _jobs(request)
    found = await asyncio.to_thread(jobs.job, job, None, key)
    num_bytes, limit = 0, int(found.options.get("content_length") or 0)
    with jobs.upload(found) as file:
        async for chunk in request.stream():
            num_bytes += len(chunk)
            if num_bytes > limit:
                raise InvalidRequest(f"source_file.content_length announced {limit} bytes; the file has more")
            await run_in_threadpool(file.write, chunk)
    _start_jobs(request)


@router.get("/download", name="download_memory", response_class=FileResponse, responses=DEEPL.responses(400, 404))
def fetch(request: Request, job: str, key: str) -> FileResponse:
    """Return the file of an export; its `download_url` has the key, so that no API key is needed."""
    jobs = _jobs(request)
    found = jobs.job(job, None, key)
    if found.operation != "export" or not jobs.path(found).is_file():
        raise NotFound("the file of this job is not there, or not any more")
    jobs.note_download(found)
    return FileResponse(jobs.path(found), media_type="application/xml", filename=found.name)


@router.get("/jobs/{job_id}", response_model_exclude_none=True, responses=DEEPL.responses(400, 404))
def job_status(request: Request, job_id: str) -> JobAnswer:
    """Return the status of an import or export."""
    job = _jobs(request).job(job_id, viewer_of(request))
    is_import, is_done = job.operation == "import", job.status in ("completed", "downloaded")
    is_waiting = job.status == "awaiting_input"
    is_late = is_waiting and datetime.now(UTC).timestamp() > job.created + UPLOAD_SECONDS
    result = JobResult(
        status="expired" if is_late else job.status,  # type: ignore[arg-type]  # those of `JobStatus`
        status_metadata={"required_action": "upload the file to upload_url"} if is_waiting else None,
        download_url=_url(request, "download_memory", job) if is_done and not is_import else None,
        error=None if job.error is None else {"message": job.error},
        translation_memory_id=job.memory if is_import and is_done else None,
        skipped_segment_count=job.skipped if is_import and is_done else None,
    )
    content_type, length = job.options.get("content_type"), job.options.get("content_length")
    return JobAnswer(
        job_id=job.id,
        operation="import" if is_import else "export",
        creation_time=datetime.fromtimestamp(job.created, UTC),
        updated_time=datetime.fromtimestamp(job.changed, UTC),
        parameters={"display_name": str(job.options.get("display_name") or job.name)}
        if is_import
        else {"translation_memory_id": job.memory or ""},
        source_file=SourceFile(file_name=job.name, content_type=str(content_type), content_length=int(length or 1))
        if is_import
        else None,
        results=[result],
    )


@router.post("/{memory_id}/export", status_code=202, responses=DEEPL.responses(400, 404))
async def export(request: Request, response: Response, memory_id: str) -> ExportAnswer:
    """Export a memory as TMX; an earlier export of the same segments is returned again, with the status 200."""
    memory = await asyncio.to_thread(stored_memories(request).memory, viewer_of(request), memory_id)
    job, is_earlier = await asyncio.to_thread(_jobs(request).create_export, viewer_of(request), memory)
    response.status_code = 200 if is_earlier else 202
    _start_jobs(request)
    return ExportAnswer(job_id=job.id, parameters=ExportParameters(translation_memory_id=memory.id))


@router.get("/{memory_id}", responses=DEEPL.responses(400, 404))
def one(request: Request, memory_id: str) -> MemoryAnswer:
    """Return a memory."""
    return MemoryAnswer.model_validate(stored_memories(request).memory(viewer_of(request), memory_id))


@router.patch("/{memory_id}", responses=DEEPL.responses(400, 404))
def change(request: Request, memory_id: str, fields: ChangeFields) -> MemoryAnswer:
    """Rename a memory of the API key, share it, or use any memory by default."""
    name = None if fields.name is None else replace_lone_surrogates(fields.name)
    store, viewer = stored_memories(request), viewer_of(request)
    changed = store.change(
        viewer, memory_id, name=name, is_default=fields.use_by_default, shared_with=fields.shared_with
    )
    return MemoryAnswer.model_validate(changed)


@router.delete("/{memory_id}", status_code=204, responses=DEEPL.responses(400, 404))
async def delete(request: Request, memory_id: str) -> None:
    """Delete a memory of the API key with all its segments."""
    await asyncio.to_thread(stored_memories(request).delete, viewer_of(request), memory_id)
    _start_jobs(request)  # they free the space


@router.get("/{memory_id}/segments", response_model_exclude_none=True, responses=DEEPL.responses(400, 404))
def segments(
    request: Request,
    memory_id: str,
    page_size: Annotated[int, Query(ge=1, le=100)] = 50,
    page_cursor: Annotated[str, Query(pattern=r"^\d{1,18}$")] = "0",
    filter_text: Annotated[str, Query(max_length=1000)] = "",
    filter_case_sensitive: bool = False,
) -> SegmentsAnswer:
    """Return a page of segments, those with `filter_text` in source or translation."""
    if filter_text and len(filter_text) < _MIN_FILTER_CHARACTERS:
        raise InvalidRequest(f"filter_text must have at least {_MIN_FILTER_CHARACTERS} characters")
    store = stored_memories(request)
    memory = store.memory(viewer_of(request), memory_id)
    found = store.segments(
        memory, int(page_cursor), page_size + 1, filter_text, is_case_sensitive=filter_case_sensitive
    )
    shown = found[:page_size]
    return SegmentsAnswer(
        segments=list(map(_segment, shown)),
        segment_count=memory.num_segments,
        next_page_cursor=str(shown[-1].id) if len(found) > page_size else None,
    )


@router.put("/{memory_id}/segments", response_model_exclude_none=True, responses=DEEPL.responses(400, 404))
def put_segments(request: Request, memory_id: str, fields: SegmentsFields) -> SegmentsAnswer:
    """Add segments to a memory, or replace the translations of those that it has."""
    pairs = [
        Pair(
            replace_lone_surrogates(segment.source_text),
            each.target_language,
            replace_lone_surrogates(each.target_text),
            None if segment.context is None else replace_lone_surrogates(segment.context),
        )
        for segment in fields.segments
        for each in segment.targets
    ]
    store, viewer = stored_memories(request), viewer_of(request)
    stored = store.put(viewer, memory_id, pairs)
    num_segments = store.memory(viewer, memory_id).num_segments
    return SegmentsAnswer(segments=list(map(_segment, stored)), segment_count=num_segments)


@router.delete("/{memory_id}/segments/{segment_id}", status_code=204, responses=DEEPL.responses(400, 404))
def delete_segment(request: Request, memory_id: str, segment_id: int) -> None:
    """Delete a segment."""
    stored_memories(request).delete_segment(viewer_of(request), memory_id, segment_id)


def _jobs(request: Request) -> Jobs:
    return Jobs(stored_memories(request))


def _start_jobs(request: Request) -> None:
    runner = server_state(request).memory_jobs
    assert runner is not None, "a server with memories has it"
    runner.start()


def _url(request: Request, name: str, job: Job) -> str:
    return str(request.url_for(name).include_query_params(job=job.id, key=job.secret))


def _segment(segment: Segment) -> SegmentAnswer:
    times = {"creation_time": segment.created, "updated_time": segment.changed}
    target = TargetAnswer(
        target_segment_id=str(segment.id), target_language=segment.language, target_text=segment.target, **times
    )
    return SegmentAnswer(
        source_segment_id=str(segment.id),
        source_text=segment.source,
        targets=[target],
        updated_by=segment.author,
        context=segment.context,
        **times,
    )
