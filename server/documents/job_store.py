"""Document jobs: submitted, translated in the background, kept for a while, deleted.

All protocols share the store: a route submits a name, bytes and a `Translate`, and gets a `DocumentJob`, whose `id`
identifies it from then on. `id` and `key` are random; a protocol without keys uses the id alone. All methods run on the
event loop's thread; documents are read in processes of their own.
"""

import asyncio
import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from server.documents.capacity import CapacityLimits, DocumentCapacity
from server.documents.formats.options import NO_FORMAT_OPTIONS, FormatOptions
from server.documents.formats.registry import format_of
from server.documents.fragment import DocumentCounts, Fragment
from server.documents.input.limits import FileLimits
from server.documents.input.uploads import WorkFolder, copy_upload, remove_abandoned_folders, shown_name
from server.documents.isolation.pool import DocumentProcessPool, RunningSlots
from server.documents.isolation.process import ProcessLimits
from server.documents.jobs import DocumentJob, FinishedDocument, JobStatus, StoredJob
from server.documents.rewriting import RewriteSteps, Translate, in_thread, translate_document
from server.documents.steps import DocumentSize
from server.interface.client_identity import client_of_call
from server.interface.errors import (
    DocumentNotReady,
    EngineFailed,
    KvasirError,
    UnknownDocument,
)


class PhaseClock:
    """Seconds spent in each phase until now. A phase may be entered several times."""

    def __init__(self, clock: Callable[[], float], phase: str) -> None:
        self._clock = clock
        self._phase = phase
        self._since = clock()
        self._seconds: dict[str, float] = {}

    def enter(self, phase: str) -> None:
        """End the present phase and begin another one."""
        now = self._clock()
        self._seconds[self._phase] = self._seconds.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each phase, the present one included, in the order of their beginnings."""
        self.enter(self._phase)
        return dict(self._seconds)


class TimedSteps:
    """Steps of a document whose reading and writing are phases; the time between steps is that of translation."""

    def __init__(self, steps: RewriteSteps, phases: PhaseClock) -> None:
        self._steps = steps
        self._phases = phases

    @property
    def counts(self) -> DocumentCounts:
        """Counts of the document so far."""
        return self._steps.counts

    async def measure(self) -> DocumentSize:
        """Read the whole document and return its size."""
        self._phases.enter("read")
        return await self._steps.measure()

    async def advance(self, translations: list[Fragment] | None) -> list[Fragment] | None:
        """Take translations of the last fragments, and return the next fragments, or None at the end."""
        self._phases.enter("write")
        fragments = await self._steps.advance(translations)
        self._phases.enter("translate")
        return fragments


_log = logging.getLogger("kvasir.documents")

_ASKING_SECONDS = 10.0  # clients ask at least as often for a document that they wait for

# Receives every document that was translated, failed or was deleted before, in the context of its submission.
OnFinished = Callable[[FinishedDocument], None]


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Number, size and lifetime of documents."""

    limits: FileLimits = field(default_factory=FileLimits)
    process_limits: ProcessLimits = field(default_factory=ProcessLimits)
    max_documents: int = 100  # in all states together; finished ones make room for new ones
    max_of_client: int = 25  # queued and in progress
    max_bytes: int = 2_000_000_000  # of all files
    max_running: int = 2  # as many again may run while they are read for long
    lifetime_seconds: float = 3600.0  # of a document that is translated, or has failed
    folder: Path | None = None  # for temporary files; None is the system's folder for them


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """A translated document. The caller closes `stream`, which stays readable when the document is deleted."""

    name: str
    media_type: str
    num_bytes: int
    stream: BinaryIO


class DocumentStore:
    """Documents of one server. `close` removes them all."""

    def __init__(
        self,
        options: StoreOptions,
        on_finished: OnFinished = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._on_finished = on_finished
        self._clock = clock
        self._jobs: dict[str, StoredJob] = {}
        self._slots = RunningSlots(options.max_running)
        self._processes = DocumentProcessPool(options.process_limits)
        self._folder: WorkFolder | None = None
        self._folder_lock = threading.Lock()  # uploads are copied in threads
        limits = CapacityLimits(options.max_documents, options.max_of_client, options.max_bytes)
        self.capacity = DocumentCapacity(limits, self._jobs.values, self._discard, clock)

    def __len__(self) -> int:
        """Return the number of documents in all states."""
        return len(self._jobs)

    async def remove_abandoned(self) -> None:
        """Remove the files of servers that were killed."""
        await asyncio.to_thread(remove_abandoned_folders, self._options.folder)

    async def submit(
        self,
        name: str,
        content: BinaryIO,
        translate: Translate,
        options: FormatOptions = NO_FORMAT_OPTIONS,
        format_name: str | None = None,
    ) -> DocumentJob:
        """Copy a document, and translate it later. `format_name` takes precedence over the extension of `name`.

        Raises `UnsupportedFormat`, `InvalidRequest`, `QueueFull`, `DocumentTooLarge`, and `InvalidDocument` for an
        empty file.
        """
        kind = format_of(name, options, format_name)
        self._remove_expired()
        client = client_of_call.get()
        self.capacity.make_room(client, 0)
        job = StoredJob(kind.result_name(shown_name(name)), kind, client, translate.report)
        self._jobs[job.id] = job
        try:
            job.folder = await in_thread(self._copy, content)
            job.num_bytes = (job.folder / "source").stat().st_size
        except BaseException:
            self._jobs.pop(job.id, None)
            raise
        job.task = asyncio.create_task(self._run(job, job.folder, translate))
        return self._state_of(job)

    def get(self, job_id: str) -> DocumentJob:
        """Return the state of a document; raises `UnknownDocument`."""
        return self._state_of(self._job(job_id))

    @property
    def num_unfinished(self) -> int:
        """The number of documents that are queued or in progress."""
        return sum(job.finished is None for job in self._jobs.values())

    @property
    def num_awaited(self) -> int:
        """The number of translated documents that no client has fetched, and of which one asked a moment ago."""
        since = self._clock() - _ASKING_SECONDS
        return sum(
            job.status is JobStatus.DONE and not job.is_fetched and max(job.asked, job.finished or 0.0) >= since
            for job in self._jobs.values()
        )

    async def finish(self) -> None:
        """Wait until no document is queued or in progress."""
        while tasks := [job.task for job in self._jobs.values() if job.finished is None and job.task is not None]:
            await asyncio.wait(tasks)
            await asyncio.sleep(0)  # a task has ended before its job is finished

    async def wait(self, job_id: str) -> DocumentJob:
        """Wait until a document is done or has failed; raises `UnknownDocument`. Cancelling stops only the wait."""
        job = self._job(job_id)
        if job.task is not None:
            await asyncio.wait([job.task])
        return self._state_of(job)

    def open(self, job_id: str) -> DocumentContent:
        """Open the translated document; raises `UnknownDocument`, and `DocumentNotReady` with the reason."""
        job = self._job(job_id)
        if job.status is not JobStatus.DONE or job.folder is None:
            reason = f": {job.error}" if job.error is not None else ""
            raise DocumentNotReady(f"the document has no translation; its status is {job.status}{reason}")
        result = job.folder / "result"
        job.is_fetched = True
        return DocumentContent(job.name, job.kind.media_type, result.stat().st_size, result.open("rb"))

    async def delete(self, job_id: str) -> None:
        """Stop translating a document and remove it; raises `UnknownDocument`."""
        job = self._job(job_id)
        del self._jobs[job_id]
        await self._end(job)

    async def close(self) -> None:
        """Stop everything and remove all files."""
        while self._jobs:
            await self._end(self._jobs.popitem()[1])
        await self._processes.close()
        if self._folder is not None:
            await asyncio.to_thread(self._folder.close)
            self._folder = None

    def _copy(self, content: BinaryIO) -> Path:
        with self._folder_lock:
            if self._folder is None:
                self._folder = WorkFolder(self._options.folder)
        return copy_upload(content, self._folder.path, self._options.limits.max_file_bytes)

    async def _run(self, job: StoredJob, folder: Path, translate: Translate) -> None:
        phases = PhaseClock(self._clock, "queue")
        try:
            async with self._slots.slot() as on_long_step:
                job.status, job.begun = JobStatus.TRANSLATING, self._clock()
                await self._translate(job, folder, translate, phases, on_long_step)
            job.status = JobStatus.DONE
        except asyncio.CancelledError:
            self._on_finished(FinishedDocument(job.kind.extension, "cancelled", job.size, phases.seconds()))
            raise
        except KvasirError as error:
            job.status, job.error = JobStatus.ERROR, error
        except Exception:  # noqa: BLE001 - logged and shown as the status; the other documents go on
            _log.exception("document failed", extra={"document": job.id})
            job.status = JobStatus.ERROR
            job.error = EngineFailed("the server failed on this document; its log has the cause")
        (folder / "source").unlink(missing_ok=True)
        job.num_bytes = _num_bytes(folder)
        self._on_finished(FinishedDocument(job.kind.extension, str(job.status), job.size, phases.seconds(), job.error))
        job.finished = self._clock()
        job.timer = asyncio.get_running_loop().call_later(self._options.lifetime_seconds, self._remove_expired)

    async def _translate(
        self, job: StoredJob, folder: Path, translate: Translate, phases: PhaseClock, on_long_step: Callable[[], None]
    ) -> None:
        def on_progress(units_done: int, _num_units: int) -> None:
            job.units_done = units_done

        files = folder / "source", folder / "result"
        async with self._processes.rewrite(*files, job.kind, self._options.limits, on_long_step) as steps:
            timed = TimedSteps(steps, phases)
            job.size = await timed.measure()
            await translate_document(timed, translate, job.size, on_progress)

    def _job(self, job_id: str) -> StoredJob:
        self._remove_expired()
        try:
            job = self._jobs[job_id]
            job.asked = self._clock()
            return job
        except KeyError:
            raise UnknownDocument(
                f"no document has this id; a document is kept for {self._options.lifetime_seconds:g} seconds after its "
                "translation, unless it is deleted"
            ) from None

    def _remove_expired(self) -> None:
        now = self._clock()
        for job in list(self._jobs.values()):
            if job.finished is not None and now - job.finished >= self._options.lifetime_seconds:
                self._discard(job)

    def _discard(self, job: StoredJob) -> None:
        """Remove a finished document."""
        del self._jobs[job.id]
        self._remove(job)

    async def _end(self, job: StoredJob) -> None:
        if job.task is not None:
            job.task.cancel()
            await asyncio.wait([job.task])
            job.task = None  # its error has a frame that has the job: a cycle, which only full collections free
        self._remove(job)

    def _remove(self, job: StoredJob) -> None:
        if job.timer is not None:
            job.timer.cancel()
        if job.folder is not None:
            shutil.rmtree(job.folder, ignore_errors=True)

    def _state_of(self, job: StoredJob) -> DocumentJob:
        return job.state(self._clock())


def _num_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())
