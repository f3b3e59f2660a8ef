"""Documents on their way: taken in, translated one after the other in the background, kept for a while, forgotten.

For every protocol alike: a route hands in a name, bytes and a `Translate`, and gets a `DocumentJob`, whose `id` leads
to all else. `id` and `key` are random; a protocol without a key of its own asks for the id alone. Everything here runs
on the event loop's thread; what takes long is done in worker threads.
"""

import asyncio
import logging
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from server.documents.formats.registry import DocumentFormat, format_of
from server.documents.input.limits import FileLimits
from server.documents.rewriting import DocumentSize, Translate, in_thread, measure, translate_document
from server.interface.errors import (
    DocumentNotReady,
    DocumentTooLarge,
    EngineFailed,
    InvalidDocument,
    KvasirError,
    QueueFull,
    UnknownDocument,
)

_log = logging.getLogger("kvasir.documents")

_COPY_BYTES = 1 << 20
_MAX_NAME_CHARACTERS = 200
_RETRY_SECONDS = 10.0  # where nothing is known of when a place will be free

# Is told the ending and the outcome (done, error, cancelled) of every document.
OnFinished = Callable[[str, str], None]


class JobStatus(StrEnum):
    """Where a document is on its way."""

    QUEUED = "queued"
    TRANSLATING = "translating"
    DONE = "done"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How many documents there may be, and for how long."""

    limits: FileLimits = field(default_factory=FileLimits)
    max_documents: int = 100  # in all states together: they take space on the disk
    max_running: int = 2  # each takes memory for the part of it that is parsed
    lifetime_seconds: float = 3600.0  # of a document that is translated, or has failed
    folder: Path | None = None  # where temporary files go; None is the system's place for them


@dataclass(frozen=True, slots=True)
class DocumentJob:
    """What can be said of a document now. Counts are 0 until it has been read once."""

    id: str
    key: str
    name: str
    status: JobStatus
    units_done: int
    num_units: int
    num_characters: int
    seconds_remaining: float | None  # estimated, while it is being translated
    error: KvasirError | None

    @property
    def progress(self) -> float:
        """The share that is translated, 0 to 1."""
        if self.status is JobStatus.DONE:
            return 1.0
        return self.units_done / self.num_units if self.num_units else 0.0


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """A translated document. Whoever got it closes `stream`; it stays readable when the document is deleted."""

    name: str
    media_type: str
    num_bytes: int
    stream: BinaryIO


@dataclass(slots=True)
class _Job:
    """A document, its folder and its task."""

    name: str
    kind: DocumentFormat
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    key: str = field(default_factory=lambda: token_hex(32))
    status: JobStatus = JobStatus.QUEUED
    size: DocumentSize = field(default_factory=lambda: DocumentSize(0, 0))
    units_done: int = 0
    begun: float = 0.0
    finished: float | None = None
    error: KvasirError | None = None
    folder: Path | None = None
    task: asyncio.Task[None] | None = None
    timer: asyncio.TimerHandle | None = None


class DocumentStore:
    """The documents of one server. Nothing survives `close`."""

    def __init__(
        self,
        options: StoreOptions,
        on_finished: OnFinished = lambda _extension, _outcome: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._on_finished = on_finished
        self._clock = clock
        self._jobs: dict[str, _Job] = {}
        self._slots = asyncio.Semaphore(options.max_running)
        self._folder: Path | None = None

    def __len__(self) -> int:
        """Documents there are, in all states."""
        return len(self._jobs)

    async def submit(self, name: str, content: BinaryIO, translate: Translate) -> DocumentJob:
        """Take in a document: it is copied when this returns, and translated later.

        Raises `UnsupportedFormat`, `QueueFull`, `DocumentTooLarge`, and `InvalidDocument` for an empty file.
        """
        kind = format_of(name)
        self._forget_expired()
        if len(self._jobs) >= self._options.max_documents:
            raise QueueFull(
                f"there are {len(self._jobs)} documents, as many as this server keeps; try again later", self._wait()
            )
        job = _Job(_shown_name(name), kind)
        self._jobs[job.id] = job
        try:
            job.folder = await in_thread(self._take_in, content)
        except BaseException:
            self._jobs.pop(job.id, None)
            raise
        job.task = asyncio.create_task(self._run(job, job.folder, translate))
        return self._described(job)

    def get(self, job_id: str) -> DocumentJob:
        """How far a document is; raises `UnknownDocument`."""
        return self._described(self._job(job_id))

    async def wait(self, job_id: str) -> DocumentJob:
        """The document when it is done or has failed; raises `UnknownDocument`. Cancelling it stops nothing."""
        job = self._job(job_id)
        if job.task is not None:
            await asyncio.wait([job.task])
        return self._described(job)

    def open(self, job_id: str) -> DocumentContent:
        """The translated document; raises `UnknownDocument`, and `DocumentNotReady` with what is the matter."""
        job = self._job(job_id)
        if job.status is not JobStatus.DONE or job.folder is None:
            reason = f": {job.error}" if job.error is not None else ""
            raise DocumentNotReady(f"the document has no translation; its status is {job.status}{reason}")
        result = job.folder / "result"
        return DocumentContent(job.name, job.kind.media_type, result.stat().st_size, result.open("rb"))

    async def delete(self, job_id: str) -> None:
        """Stop translating a document and forget it; raises `UnknownDocument`."""
        job = self._job(job_id)
        del self._jobs[job_id]
        await self._end(job)

    async def close(self) -> None:
        """Stop everything and remove all files."""
        jobs, self._jobs = list(self._jobs.values()), {}
        for job in jobs:
            await self._end(job)
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)
            self._folder = None

    def _take_in(self, content: BinaryIO) -> Path:
        """Copy a file into a folder of its own, not a byte more than allowed."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="kvasir-documents-", dir=self._options.folder))
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        limit = self._options.limits.max_file_bytes
        num_bytes = 0
        try:
            with (folder / "source").open("wb") as source:
                while chunk := content.read(_COPY_BYTES):
                    num_bytes += len(chunk)
                    if num_bytes > limit:
                        raise DocumentTooLarge(f"the file has more than {limit} bytes; this server takes no more")
                    source.write(chunk)
            if not num_bytes:
                raise InvalidDocument("the file is empty: it has 0 bytes")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder

    async def _run(self, job: _Job, folder: Path, translate: Translate) -> None:
        try:
            async with self._slots:
                job.status, job.begun = JobStatus.TRANSLATING, self._clock()
                await self._translate(job, folder, translate)
            job.status = JobStatus.DONE
        except asyncio.CancelledError:
            self._on_finished(job.kind.extension, "cancelled")
            raise
        except KvasirError as error:
            job.status, job.error = JobStatus.ERROR, error
        except Exception:  # noqa: BLE001 - logged, and told to whoever asks; the other documents go on
            _log.exception("a bug: this document failed", extra={"document": job.id})
            job.status = JobStatus.ERROR
            job.error = EngineFailed("the server failed on this document; its log has the cause")
        (folder / "source").unlink(missing_ok=True)
        self._on_finished(job.kind.extension, str(job.status))
        job.finished = self._clock()
        job.timer = asyncio.get_running_loop().call_later(self._options.lifetime_seconds, self._forget_expired)

    async def _translate(self, job: _Job, folder: Path, translate: Translate) -> None:
        source, limits = folder / "source", self._options.limits
        job.size = await measure(source, job.kind, limits)

        def on_progress(units_done: int, _num_units: int) -> None:
            job.units_done = units_done

        await translate_document(source, folder / "result", job.kind, translate, limits, job.size, on_progress)

    def _job(self, job_id: str) -> _Job:
        self._forget_expired()
        try:
            return self._jobs[job_id]
        except KeyError:
            raise UnknownDocument(
                "there is no such document; translated ones are kept for "
                f"{self._options.lifetime_seconds:g} seconds, unless they are deleted"
            ) from None

    def _forget_expired(self) -> None:
        now = self._clock()
        for job in list(self._jobs.values()):
            if job.finished is not None and now - job.finished >= self._options.lifetime_seconds:
                del self._jobs[job.id]
                self._remove(job)

    def _wait(self) -> float:
        """Seconds until the first document expires, as far as that is known."""
        now = self._clock()
        left = [job.finished + self._options.lifetime_seconds - now for job in self._jobs.values() if job.finished]
        return min([_RETRY_SECONDS, *left])

    async def _end(self, job: _Job) -> None:
        if job.task is not None:
            job.task.cancel()
            await asyncio.wait([job.task])
        self._remove(job)

    def _remove(self, job: _Job) -> None:
        if job.timer is not None:
            job.timer.cancel()
        if job.folder is not None:
            shutil.rmtree(job.folder, ignore_errors=True)

    def _described(self, job: _Job) -> DocumentJob:
        remaining = None
        if job.status is JobStatus.TRANSLATING and job.units_done:
            elapsed = self._clock() - job.begun
            remaining = elapsed / job.units_done * (job.size.num_units - job.units_done)
        return DocumentJob(
            job.id,
            job.key,
            job.name,
            job.status,
            job.units_done,
            job.size.num_units,
            job.size.num_characters,
            remaining,
            job.error,
        )


def _shown_name(name: str) -> str:
    """The last part of a name that a client gave, fit for a header and a log. No file is ever called by it."""
    last = name.replace("\\", "/").rpartition("/")[2]
    stem, dot, extension = "".join(filter(str.isprintable, last)).rpartition(".")
    return stem[: _MAX_NAME_CHARACTERS - len(extension)] + dot + extension
