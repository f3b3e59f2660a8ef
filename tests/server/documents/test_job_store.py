import asyncio
import gc
import io
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from server.documents.job_store import DocumentStore, StoreOptions
from server.documents.jobs import FinishedDocument, JobStatus
from server.documents.rewriting import Translate
from server.interface.errors import (
    DeadlineExceeded,
    DocumentNotReady,
    QueueFull,
    UnknownDocument,
)
from tests.fakes.engine import FakeClock
from tests.server.documents.documents import loud

PATIENCE_SECONDS = 60.0
LETTER = b"Good morning.\n\nHow are you?\n"


@dataclass
class Gate:
    """A translation that waits until it is let through."""

    entered: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    num_cancelled: int = 0

    async def translate(self, texts: Sequence[str]) -> list[str]:
        self.entered.set()
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.num_cancelled += 1
            raise
        return await loud(texts)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_SECONDS))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_document_is_taken_in_translated_and_given_out(tmp_path: Path) -> None:
    outcomes: list[FinishedDocument] = []

    async def scenario() -> None:
        store = DocumentStore(StoreOptions(folder=tmp_path), outcomes.append)
        gate = Gate()
        job = await store.submit("folder/letter.txt", io.BytesIO(LETTER), Translate(gate.translate))
        assert (job.name, job.status, job.num_units, job.progress) == ("letter.txt", JobStatus.QUEUED, 0, 0.0)
        await gate.entered.wait()
        job = store.get(job.id)
        assert (job.status, job.units_done, job.num_units, job.num_characters) == (JobStatus.TRANSLATING, 0, 2, 25)
        with pytest.raises(DocumentNotReady, match="status is translating"):
            store.open(job.id)
        gate.opened.set()
        job = await store.wait(job.id)
        assert (job.status, job.units_done, job.progress, job.error) == (JobStatus.DONE, 2, 1.0, None)
        content = store.open(job.id)
        await store.delete(job.id)
        with content.stream as stream:  # an open file stays readable
            assert stream.read() == LETTER.upper()
        assert (content.num_bytes, content.media_type) == (len(LETTER), "text/plain")
        with pytest.raises(UnknownDocument):
            store.get(job.id)
        assert not _files(tmp_path)
        await store.close()

    run(scenario)
    [ended] = outcomes
    assert (ended.extension, ended.outcome, ended.size.num_units) == (".txt", "done", 2)
    assert list(ended.phase_seconds) == ["queue", "read", "write", "translate"]
    assert not list(tmp_path.iterdir())


def test_a_translation_that_fails_fails_the_document(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def late(_: Sequence[str]) -> list[str]:
        raise DeadlineExceeded("not finished")

    async def broken(_: Sequence[str]) -> list[str]:
        raise RuntimeError("secret details")

    async def scenario() -> None:
        store = DocumentStore(StoreOptions(folder=tmp_path))
        first = await store.submit("a.txt", io.BytesIO(LETTER), Translate(late))
        second = await store.submit("a.txt", io.BytesIO(LETTER), Translate(broken))
        first, second = await store.wait(first.id), await store.wait(second.id)
        assert isinstance(first.error, DeadlineExceeded)
        assert second.error is not None
        assert second.error.code == "engine_failed"
        assert "secret" not in str(second.error)
        await store.close()

    run(scenario)
    assert "secret details" in caplog.text


def test_finished_documents_make_room_and_unfinished_ones_do_not(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        store = DocumentStore(StoreOptions(max_documents=2, max_running=2, folder=tmp_path), clock=clock)
        jobs = [await store.submit("a.txt", io.BytesIO(LETTER), Translate(loud)) for _ in range(2)]
        for job in jobs:
            await store.wait(job.id)
            clock.now += 1
        gates = [Gate(), Gate()]
        last = [await store.submit("a.txt", io.BytesIO(LETTER), Translate(gate.translate)) for gate in gates]
        for job in jobs:
            with pytest.raises(UnknownDocument):
                store.get(job.id)
        with pytest.raises(QueueFull, match="the server has 2 of 2 unfinished documents; retry in 10 s"):
            await store.submit("a.txt", io.BytesIO(LETTER), Translate(loud))
        assert store.num_unfinished == 2
        for gate in gates:
            gate.opened.set()
        await store.finish()
        assert store.num_unfinished == 0
        assert all(store.get(job.id).status is JobStatus.DONE for job in last)
        await store.close()

    run(scenario)


def test_no_more_documents_run_at_once_than_may(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = DocumentStore(StoreOptions(max_running=1, folder=tmp_path))
        gate, other = Gate(), Gate()
        first = await store.submit("a.txt", io.BytesIO(LETTER), Translate(gate.translate))
        second = await store.submit("b.txt", io.BytesIO(LETTER), Translate(other.translate))
        await gate.entered.wait()
        assert store.get(second.id).status is JobStatus.QUEUED
        other.opened.set()
        gate.opened.set()
        assert (await store.wait(second.id)).status is JobStatus.DONE
        assert (await store.wait(first.id)).status is JobStatus.DONE
        await store.close()

    run(scenario)


def test_deleting_a_document_cancels_its_translation(tmp_path: Path) -> None:
    outcomes: list[FinishedDocument] = []

    async def scenario() -> None:
        store = DocumentStore(StoreOptions(folder=tmp_path), outcomes.append)
        gate = Gate()
        job = await store.submit("a.txt", io.BytesIO(LETTER), Translate(gate.translate))
        await gate.entered.wait()
        await store.delete(job.id)
        assert gate.num_cancelled == 1
        assert not _files(tmp_path)
        await store.close()

    run(scenario)
    [ended] = outcomes
    assert (ended.outcome, list(ended.phase_seconds)) == ("cancelled", ["queue", "read", "write", "translate"])


def test_a_deleted_document_leaves_no_objects_to_full_garbage_collections(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = DocumentStore(StoreOptions(folder=tmp_path))
        gate = Gate()
        lines = "".join(f"House number {number}.\n" for number in range(1000)).encode()
        job = await store.submit("a.txt", io.BytesIO(lines), Translate(gate.translate))
        await gate.entered.wait()
        gc.collect()
        gc.disable()
        await store.delete(job.id)
        assert gc.collect() < 100
        await store.close()

    try:
        run(scenario)
    finally:
        gc.enable()


def test_closing_cancels_everything_and_removes_all_files(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = DocumentStore(StoreOptions(max_running=1, folder=tmp_path))
        gate = Gate()
        for _ in range(3):
            await store.submit("a.txt", io.BytesIO(LETTER), Translate(gate.translate))
        await gate.entered.wait()
        await store.close()
        assert gate.num_cancelled == 1
        assert len(store) == 0

    run(scenario)
    assert not list(tmp_path.iterdir())


def test_a_translated_document_is_awaited_until_it_is_fetched_or_nobody_asks_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = FakeClock()
        store = DocumentStore(StoreOptions(folder=tmp_path), clock=clock)
        jobs = [await store.submit(f"{name}.txt", io.BytesIO(LETTER), Translate(loud)) for name in "abc"]
        assert store.num_awaited == 0, "none is translated yet"
        await store.finish()
        assert store.num_awaited == 3
        store.open(jobs[0].id).stream.close()
        await store.delete(jobs[1].id)
        assert store.num_awaited == 1
        clock.now += 9.0
        store.get(jobs[2].id)
        clock.now += 9.0
        assert store.num_awaited == 1
        clock.now += 9.0
        assert store.num_awaited == 0
        await store.close()

    run(scenario)
