"""Processes for documents, replaced by objects that record what happens to them."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from server.documents.formats.registry import format_of
from server.documents.input.limits import FileLimits
from server.documents.isolation.pool import DocumentProcessPool, RunningSlots
from server.documents.isolation.process import DocumentProcess, ProcessLimits
from server.interface.errors import EngineFailed


@dataclass(eq=False)
class FakeProcess:
    """A process that reads nothing."""

    is_free: bool = True
    is_alive: bool = True
    is_killed: bool = False

    def rewrite(self, *_: object) -> "FakeProcess":
        """Return itself in place of the steps."""
        return self

    async def kill(self) -> None:
        """Record the end."""
        self.is_killed = True


def _document(processes: DocumentProcessPool) -> "object":
    return processes.rewrite(Path("a"), Path("b"), format_of("a.txt"), FileLimits(), lambda: None)


async def _rest() -> None:
    """Let the reserve start."""
    for _ in range(5):
        await asyncio.sleep(0)


def _run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_reserve_that_cannot_start_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    num_started = 0

    async def start(_: ProcessLimits) -> FakeProcess:
        nonlocal num_started
        num_started += 1
        if num_started == 2:
            raise EngineFailed("no memory")
        return FakeProcess()

    async def scenario() -> None:
        processes = DocumentProcessPool(ProcessLimits())
        async with _document(processes):  # type: ignore[attr-defined]
            await _rest()
        async with _document(processes):  # type: ignore[attr-defined]
            await _rest()
        assert num_started == 3  # the next document tries again
        await processes.close()

    monkeypatch.setattr(DocumentProcess, "start", start)
    _run(scenario)
    assert [record.getMessage() for record in caplog.records] == ["no reserve process for documents"]


def test_documents_that_compute_for_long_give_as_many_slots_to_others_as_there_are() -> None:
    async def scenario() -> None:
        slots = RunningSlots(1)
        running: list[str] = []
        moves: dict[str, Callable[[], None]] = {}
        ends = {name: asyncio.Event() for name in "abcd"}

        async def document(name: str) -> None:
            async with slots.slot() as move:
                running.append(name)
                moves[name] = move
                await ends[name].wait()
            running.remove(name)

        tasks = []
        for name in "abcd":
            tasks.append(asyncio.create_task(document(name)))
            await _rest()
        assert running == ["a"]
        moves["a"]()
        moves["a"]()  # the same document needs one slot
        await _rest()
        assert running == ["a", "b"]
        moves["b"]()  # no slot for another long document
        await _rest()
        assert running == ["a", "b"]
        ends["a"].set()
        await _rest()
        assert running == ["b"]
        moves["b"]()
        await _rest()
        assert running == ["b", "c"]
        for each in ends.values():
            each.set()
        await asyncio.gather(*tasks)
        assert running == []

    _run(scenario)
