"""A queue that forms batches for an engine: it waits briefly, then sends the sentences received so far.

This is the usual way to serve an engine that translates one batch at a time.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from benchmarks.servers.texts import Pieces

Deliver = Callable[[int, Pieces], None]


class Engine(Protocol):
    """An engine that translates a batch on the calling thread."""

    def translate(self, sentences: Sequence[Pieces], beam_size: int, deliver: Deliver) -> None:
        """Call `deliver(index, translation)` once for each sentence, as early as possible."""


class QueueFull(Exception):
    """The number of waiting sentences exceeds the limit."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Limits of batches. `max_batch` and `max_waiting` count sentences; None means unlimited.

    The first sentence of a batch waits at most `window_seconds` for others. The engine has at most `batches_at_once`;
    sentences that arrive meanwhile form the next batch.
    """

    max_batch: int = 32
    window_seconds: float = 0.002
    batches_at_once: int = 1
    max_waiting: int | None = None


@dataclass(slots=True)
class BatchCounts:
    """Counts of the queue so far."""

    batches: int = 0
    sentences: int = 0
    largest_batch: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A sentence, its arrival on the loop's clock, and the future of its translation."""

    sentence: Pieces
    arrived: float
    done: asyncio.Future[Pieces]


class BatchQueue:
    """A first-in, first-out queue of batches with equal beam sizes. Belongs to the event loop of `run`."""

    def __init__(self, engine: Engine, options: BatchOptions) -> None:
        self._engine = engine
        self._options = options
        self._waiting: dict[int, deque[_Waiting]] = {}  # by beam size, which is the same within a batch
        self._num_waiting = 0
        self._arrived = asyncio.Event()
        self._filled = asyncio.Event()
        self._slots = asyncio.Semaphore(options.batches_at_once)
        self._threads = ThreadPoolExecutor(options.batches_at_once, thread_name_prefix="batch")
        self._running: set[asyncio.Future[None]] = set()
        self.counts = BatchCounts()

    def submit(self, sentences: Sequence[Pieces], beam_size: int) -> list[asyncio.Future[Pieces]]:
        """Queue all sentences or none. Raises `QueueFull`; the futures raise the engine's exceptions."""
        limit = self._options.max_waiting
        # An empty queue accepts a request that is larger than the limit.
        if limit is not None and self._num_waiting and self._num_waiting + len(sentences) > limit:
            self.counts.refused += 1
            raise QueueFull(f"the queue is full: {self._num_waiting} of {limit} sentences waiting; retry after 1 s")
        loop = asyncio.get_running_loop()
        lane = self._waiting.setdefault(beam_size, deque())
        arrivals = [_Waiting(sentence, loop.time(), loop.create_future()) for sentence in sentences]
        lane.extend(arrivals)
        self._num_waiting += len(arrivals)
        if self._num_waiting:
            self._arrived.set()
        if len(lane) >= self._options.max_batch:
            self._filled.set()
        return [waiting.done for waiting in arrivals]

    async def run(self) -> None:
        """Form batches and translate them until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._slots.acquire()
                await self._arrived.wait()
                await self._wait_for_more()
                beam_size, batch = self._take()
                running = loop.run_in_executor(self._threads, self._translate, loop, batch, beam_size)
                self._running.add(running)
                running.add_done_callback(self._finish)
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _wait_for_more(self) -> None:
        """Wait until the batch is full or its oldest sentence has waited long enough."""
        oldest = self._waiting[self._next_beam_size()]
        self._filled.clear()
        if len(oldest) < self._options.max_batch:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(oldest[0].arrived + self._options.window_seconds):
                    await self._filled.wait()

    def _next_beam_size(self) -> int:
        """Return the beam size of the oldest sentence."""
        lanes = {beam_size: lane[0].arrived for beam_size, lane in self._waiting.items() if lane}
        return min(lanes, key=lambda beam_size: lanes[beam_size])

    def _take(self) -> tuple[int, list[_Waiting]]:
        beam_size = self._next_beam_size()
        lane = self._waiting[beam_size]
        num_taken = min(len(lane), self._options.max_batch)
        batch = [lane.popleft() for _ in range(num_taken)]
        self._num_waiting -= num_taken
        if not self._num_waiting:
            self._arrived.clear()
        self.counts.batches += 1
        self.counts.sentences += num_taken
        self.counts.largest_batch = max(self.counts.largest_batch, num_taken)
        # Longest first: engines pad to the longest, so the parts of a batch then have similar lengths.
        return beam_size, sorted(batch, key=lambda waiting: -len(waiting.sentence))

    def _translate(self, loop: asyncio.AbstractEventLoop, batch: Sequence[_Waiting], beam_size: int) -> None:
        """Translate a batch on a thread of the pool."""

        def deliver(index: int, translation: Pieces) -> None:
            loop.call_soon_threadsafe(_settle, batch[index].done, translation)

        try:
            self._engine.translate([waiting.sentence for waiting in batch], beam_size, deliver)
        except Exception as error:  # noqa: BLE001 - every exception belongs to the futures of this batch
            for waiting in batch:
                loop.call_soon_threadsafe(_fail, waiting.done, error)

    def _finish(self, running: asyncio.Future[None]) -> None:
        self._running.discard(running)
        self._slots.release()


def _settle(future: asyncio.Future[Pieces], translation: Pieces) -> None:
    if not future.done():  # the request may have been cancelled
        future.set_result(translation)


def _fail(future: asyncio.Future[Pieces], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
