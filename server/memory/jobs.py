"""Import and export of translation memories: jobs in the store's file, done by a process of its own.

A process that is killed loses no job: the next one goes on behind the last batch that was written.
"""

import argparse
import asyncio
import contextlib
import fcntl
import json
import os
import resource
import secrets
import shutil
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

from server.interface.errors import InvalidRequest, KvasirError, NotFound, StorageFull, means_storage_full
from server.memory.files import check_file, kind_of, languages_of, read_pairs, write_segments
from server.memory.store import Memory, MemoryStore, Quota, Segment, problem_of

UPLOAD_SECONDS = 3600  # from the creation of an import to the end of its upload
_KEPT_SECONDS = 86_400  # exported files, and what is known about jobs
_BATCH = 8000  # holds up other writers for 0.3 s; batches of a quarter take 1.5 times as long in total
_POLL_SECONDS = 0.1
_MAX_STARTS = 3  # without progress
_MAX_MEMORY_BYTES = 2_000_000_000
_MAX_JOBS = 100  # of one owner
_JOB = "id, owner, operation, status, name, memory, secret, options, position, skipped, error, created, changed"


@dataclass(frozen=True, slots=True)
class Job:
    """An import or export. `options` are its languages, and the type and length of the file as they were announced."""

    id: str
    owner: str
    operation: str
    status: str
    name: str
    memory: str | None
    secret: str = field(repr=False)
    options: Mapping[str, str | int | None]
    position: int
    skipped: int
    error: str | None
    created: int
    changed: int


class Jobs:
    """The jobs of one store, and their files, which are in a folder next to the store's.

    Imports write so many segments at once.
    """

    def __init__(self, store: MemoryStore, batch: int = _BATCH) -> None:
        self._store = store
        self._batch = batch
        self._folder = store.path.with_name(f"{store.path.name}-files")
        self._folder.mkdir(mode=0o700, exist_ok=True)

    def create_import(self, owner: str, name: str, options: Mapping[str, str | int | None]) -> Job:
        """Create an import that waits for its file. Raises `InvalidDocument` for another kind of file."""
        kind_of(name)
        return self._create(owner, "import", "awaiting_input", name, None, options)

    def create_export(self, owner: str, memory: Memory) -> tuple[Job, bool]:
        """Create an export, and return whether it is an earlier one, of the same segments."""
        row = self._store.reader.execute(
            f"SELECT {_JOB} FROM jobs WHERE memory = ? AND owner = ? AND operation = 'export' AND created > ? "
            "AND status IN ('completed', 'downloaded') ORDER BY created DESC LIMIT 1",
            (memory.id, owner, int(memory.changed.timestamp())),
        ).fetchone()
        if row is not None and self.path(_job(row)).is_file():
            return _job(row), True
        return self._create(owner, "export", "processing", f"{memory.name[:100]}.tmx", memory.id, {}), False

    def job(self, job_id: str, owner: str | None = None, secret: str | None = None) -> Job:
        """Return a job for its owner, or for a caller with its secret. Raises `NotFound`."""
        row = self._store.reader.execute(f"SELECT {_JOB} FROM jobs WHERE id = ?", (job_id,)).fetchone()
        job = None if row is None else _job(row)
        if job is None or (job.owner != owner and not secrets.compare_digest(job.secret, secret or "")):
            raise NotFound("Job not found")
        return job

    def path(self, job: Job) -> Path:
        """Return the path of a job's file."""
        return self._folder / job.id

    @contextlib.contextmanager
    def upload(self, job: Job) -> Iterator[IO[bytes]]:
        """Yield a file to write the upload of a job to, which can be processed once it is complete and on disk."""
        if job.status != "awaiting_input" or time.time() > job.created + UPLOAD_SECONDS:
            raise InvalidRequest("the file of this import was uploaded already, or its time is over")
        unfinished = self._folder / f"{job.id}.{secrets.token_hex(4)}"
        try:
            with unfinished.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self.path(job))
            self._update(job, status="processing")
        except OSError as error:
            if means_storage_full(error):
                raise StorageFull("the server has no space left for this file") from error
            raise
        finally:
            unfinished.unlink(missing_ok=True)

    def note_download(self, job: Job) -> None:
        """Note that the file of an export was downloaded."""
        self._update(job, status="downloaded")

    def run(self) -> None:
        """Do all jobs that wait, in the calling process, and free the space of deleted memories.

        Another process may be doing that already.
        """
        with (self._folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self._remove_old()
            while (row := self._next()) is not None:
                job = _job(row)
                try:
                    with self._store.transaction() as database:
                        database.execute("UPDATE jobs SET starts = starts + 1 WHERE id = ?", (job.id,))
                        [starts] = database.execute("SELECT starts FROM jobs WHERE id = ?", (job.id,)).fetchone()
                    if starts > _MAX_STARTS:
                        raise InvalidRequest(
                            "the process that did this job ended several times; the file may be too complex"
                        )
                    (self._import if job.operation == "import" else self._export)(job)
                except (KvasirError, OSError, MemoryError) as error:
                    self._fail(job, error)
            self._store.purge()

    @property
    def has_work(self) -> bool:
        """Whether jobs wait, or segments of deleted memories."""
        return self._next() is not None or self._store.has_deleted

    def _import(self, job: Job) -> None:
        path = self.path(job)
        source, target = (None if (tag := job.options.get(name)) is None else str(tag) for name in ("source", "target"))
        if job.memory is None:
            check_file(path, job.name)
            found_source, found_target = languages_of(path, job.name)
            source, target = source or found_source, target or found_target
            if source is None or (target is None and kind_of(job.name) != "tmx"):
                raise InvalidRequest(
                    "the languages of this file are unknown; name `source_language` and `target_language`"
                )
            name = str(job.options.get("display_name") or job.name)
            with self._store.transaction():
                memory = self._store.create(job.owner, name, source, [target] if target else [], is_complete=False)
                job = self._update(job, memory=memory.id, options=json.dumps({**job.options, "target": target}))
        with self._store.transaction():
            memory = self._store.incomplete(job.memory or "")
        entries = islice(read_pairs(path, job.name, source or memory.source, target), job.position, None)
        parent = os.getppid()
        self._store.write_in_bulk(is_on=True)
        while batch := list(islice(entries, self._batch)):
            valid = [pair for pair in batch if pair is not None and problem_of(pair) is None]
            with self._store.transaction():
                self._store.add(memory, valid, job.owner or None)
                job = self._update(
                    job, position=job.position + len(batch), skipped=job.skipped + len(batch) - len(valid), starts=0
                )
            if os.getppid() != parent:
                sys.exit("the server ended")  # its successor goes on
        self._store.write_in_bulk(is_on=False)
        with self._store.transaction():
            self._store.complete(memory)
            self._update(job, status="completed")
        self._store.optimize()
        path.unlink(missing_ok=True)

    def _export(self, job: Job) -> None:
        memory = self._store.memory(job.owner, job.memory or "")
        unfinished = self.path(job).with_suffix(".unfinished")
        with unfinished.open("w", encoding="utf-8") as file:
            write_segments("tmx", memory, all_segments(self._store, memory), file)
        unfinished.replace(self.path(job))
        self._update(job, status="completed")

    def _fail(self, job: Job, error: BaseException) -> None:
        with self._store.transaction():
            job = self.job(job.id, job.owner)
            if job.operation == "import" and job.memory is not None:
                self._store.discard(job.memory)
            self._update(job, status="failed", error=str(error) or type(error).__name__)
        self.path(job).unlink(missing_ok=True)

    def _create(
        self, owner: str, operation: str, status: str, name: str, memory: str | None,
        options: Mapping[str, str | int | None],
    ) -> Job:  # fmt: skip
        now = int(time.time())
        with self._store.transaction() as database:
            query = "SELECT count(*) FROM jobs WHERE owner = ? AND status IN ('awaiting_input', 'processing') "
            query += "AND created > ?"
            [count] = database.execute(query, (owner, now - UPLOAD_SECONDS)).fetchone()
            if count >= _MAX_JOBS:
                raise InvalidRequest(f"there are {count} of {_MAX_JOBS} unfinished jobs; wait for them")
            row = database.execute(
                "INSERT INTO jobs (id, owner, operation, status, name, memory, secret, options, created, changed) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING {_JOB}",
                (str(uuid.uuid4()), owner, operation, status, name, memory, secrets.token_urlsafe(32),
                 json.dumps(dict(options)), now, now),
            ).fetchone()  # fmt: skip
        return _job(row)

    def _update(self, job: Job, **values: str | int | None) -> Job:
        names = ", ".join(f"{name} = ?" for name in values)
        with self._store.transaction() as database:
            row = database.execute(
                f"UPDATE jobs SET {names}, changed = ? WHERE id = ? RETURNING {_JOB}",
                (*values.values(), int(time.time()), job.id),
            ).fetchone()
        return _job(row)

    def _next(self) -> Sequence[object] | None:
        query = f"SELECT {_JOB} FROM jobs WHERE status = 'processing' ORDER BY created LIMIT 1"
        row: Sequence[object] | None = self._store.reader.execute(query).fetchone()
        return row

    def _remove_old(self) -> None:
        with self._store.transaction() as database:
            database.execute(
                "DELETE FROM jobs WHERE status != 'processing' AND changed < ?", (int(time.time()) - _KEPT_SECONDS,)
            )
            known = {job_id for [job_id] in database.execute("SELECT id FROM jobs")}
        for path in self._folder.iterdir():
            if path.name != "lock" and path.name not in known and path.stat().st_mtime < time.time() - UPLOAD_SECONDS:
                path.unlink(missing_ok=True)


class JobRunner:
    """Starts processes for the jobs of a running server."""

    def __init__(self, path: Path, quota: Quota) -> None:
        self._command = (
            sys.executable,
            "-m",
            "server.memory.jobs",
            str(path),
            str(quota.max_segments),
            str(quota.max_bytes),
        )
        self._wanted = asyncio.Event()

    def start(self) -> None:
        """Do the jobs that wait."""
        self._wanted.set()

    async def run(self) -> None:
        """Start a process whenever jobs wait, until cancelled."""
        root = str(Path(__file__).parents[2])
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            process = await asyncio.create_subprocess_exec(*self._command, cwd=root)
            try:
                if await process.wait():
                    await asyncio.sleep(1.0)
                    self._wanted.set()
            except asyncio.CancelledError:
                process.kill()
                await process.wait()
                raise


def import_file(
    store: MemoryStore, path: Path, owner: str = "", name: str | None = None, source: str | None = None,
    target: str | None = None,
) -> tuple[Memory, int]:  # fmt: skip
    """Import a file in this process, and return the memory and the number of entries that were skipped.

    Raises `InvalidRequest` with the reason if that fails; then nothing has changed.
    """
    jobs = Jobs(store)
    options = {"display_name": name or path.name, "source": source, "target": target}
    job = jobs.create_import(owner, path.name, options)
    with path.open("rb") as file, jobs.upload(job) as upload:
        shutil.copyfileobj(file, upload)
    jobs.run()
    while (job := jobs.job(job.id, owner)).status == "processing":  # by the process of a server
        time.sleep(_POLL_SECONDS)
        jobs.run()
    if job.error is not None or job.memory is None:
        raise InvalidRequest(job.error or "the import was interrupted")
    return store.memory(owner, job.memory), job.skipped


def all_segments(store: MemoryStore, memory: Memory) -> Iterator[Segment]:
    """Yield the segments of a memory."""
    after = 0
    while page := store.segments(memory, after, _BATCH):
        yield from page
        after = page[-1].id


def _job(row: Sequence[object]) -> Job:
    values = list(row)
    values[7] = json.loads(str(values[7]))
    return Job(*values)  # type: ignore[arg-type]  # columns of this module's own


def main() -> None:
    """Do the jobs of a file until none waits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("max_segments", type=int)
    parser.add_argument("max_bytes", type=int)
    parser.add_argument("--batch", type=int, default=_BATCH)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    os.nice(5)
    Jobs(MemoryStore(options.path, Quota(options.max_segments, options.max_bytes)), options.batch).run()


if __name__ == "__main__":
    main()
