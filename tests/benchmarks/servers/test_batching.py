"""The queue of the other servers, with an engine that waits for permission."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence

import pytest

from benchmarks.servers.batching import BatchOptions, BatchQueue, Deliver, QueueFull
from benchmarks.servers.texts import Pieces

PATIENCE_SECONDS = 60.0


class HeldEngine:
    """Reverses sentences; each batch waits for a `release`."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[Pieces]]] = []
        self._begun = threading.Semaphore(0)
        self._may_go = threading.Semaphore(0)

    def release(self, batches: int = 1) -> None:
        """Permit that many batches."""
        self._may_go.release(batches)

    async def begins(self) -> None:
        """Wait until the engine has another batch."""
        assert await asyncio.to_thread(self._begun.acquire, timeout=PATIENCE_SECONDS)

    def translate(self, sentences: Sequence[Pieces], beam_size: int, deliver: Deliver) -> None:
        """Implement `Engine`."""
        self.batches.append((beam_size, list(sentences)))
        self._begun.release()
        assert self._may_go.acquire(timeout=PATIENCE_SECONDS)
        if ["broken"] in sentences:
            raise ValueError("cannot translate this")
        for index, sentence in enumerate(sentences):
            deliver(index, sentence[::-1])


Case = Callable[[HeldEngine, BatchQueue], Awaitable[None]]


def run(case: Case, options: BatchOptions) -> HeldEngine:
    """Run a case with a running queue and return its engine."""
    engine = HeldEngine()

    async def beside_the_queue() -> None:
        queue = BatchQueue(engine, options)
        running = asyncio.create_task(queue.run())
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await case(engine, queue)
        finally:
            engine.release(100)
            running.cancel()

    asyncio.run(beside_the_queue())
    return engine


def test_sentences_that_arrive_while_the_engine_is_busy_form_one_batch_with_the_longest_first() -> None:
    async def case(engine: HeldEngine, queue: BatchQueue) -> None:
        first = queue.submit([["a"]], 1)
        await engine.begins()
        rest = [*queue.submit([["b", "c"], ["d"]], 1), *queue.submit([["e", "f", "g"]], 1)]
        engine.release(2)
        assert [await future for future in [*first, *rest]] == [["a"], ["c", "b"], ["d"], ["g", "f", "e"]]
        assert queue.counts.largest_batch == 3

    engine = run(case, BatchOptions(max_batch=8, window_seconds=0))
    assert [batch for _, batch in engine.batches] == [[["a"]], [["e", "f", "g"], ["b", "c"], ["d"]]]


def test_a_batch_that_is_full_does_not_wait_for_its_window() -> None:
    async def case(engine: HeldEngine, queue: BatchQueue) -> None:
        engine.release(2)
        for future in queue.submit([["a"], ["b"], ["c"], ["d"]], 1):
            await future

    engine = run(case, BatchOptions(max_batch=2, window_seconds=10 * PATIENCE_SECONDS))
    assert [len(batch) for _, batch in engine.batches] == [2, 2]


def test_requests_with_different_beam_sizes_share_no_batch() -> None:
    async def case(engine: HeldEngine, queue: BatchQueue) -> None:
        queue.submit([["a"]], 1)
        await engine.begins()
        waiting = [*queue.submit([["b"]], 4), *queue.submit([["c"]], 1), *queue.submit([["d"]], 4)]
        engine.release(3)
        for future in waiting:
            await future

    engine = run(case, BatchOptions(max_batch=8, window_seconds=0))
    assert [(beams, sorted(batch)) for beams, batch in engine.batches[1:]] == [(4, [["b"], ["d"]]), (1, [["c"]])]


def test_a_full_queue_takes_all_of_a_request_or_nothing() -> None:
    async def case(engine: HeldEngine, queue: BatchQueue) -> None:
        queue.submit([["a"]], 1)
        await engine.begins()
        waiting = queue.submit([["b"], ["c"]], 1)
        with pytest.raises(QueueFull, match="2 of 3 sentences waiting"):
            queue.submit([["d"], ["e"]], 1)
        waiting += queue.submit([["f"]], 1)
        engine.release(2)
        assert [await future for future in waiting] == [["b"], ["c"], ["f"]]
        assert queue.counts.refused == 1

    run(case, BatchOptions(max_batch=8, window_seconds=0, max_waiting=3))


def test_a_batch_that_fails_fails_its_own_requests_and_no_others() -> None:
    async def case(engine: HeldEngine, queue: BatchQueue) -> None:
        [broken] = queue.submit([["broken"]], 1)
        await engine.begins()
        [sound] = queue.submit([["a"]], 1)
        engine.release(2)
        with pytest.raises(ValueError, match="cannot translate this"):
            await broken
        assert await sound == ["a"]

    run(case, BatchOptions(window_seconds=0))
