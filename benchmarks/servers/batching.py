"""A queue in front of an engine that translates best by the batch: wait a little, then send what has gathered.

The usual way to serve an engine that takes a batch and is busy until it has translated all of it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from benchmarks.servers.pieces import Pieces

Deliver = Callable[[int, Pieces], None]


class Engine(Protocol):
    """Something that translates a batch on the calling thread."""

    def translate(self, sentences: Sequence[Pieces], beam_size: int, deliver: Deliver) -> None:
        """Call `deliver(index, translation)` once for each sentence, the earlier the better."""


class QueueFull(Exception):
    """More sentences wait than may."""


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How batches are formed. `max_batch` counts sentences; `max_waiting` too, and None is no limit.

    `window_seconds` is how long the first sentence of a batch waits for others, unless the batch is full before.
    `batches_at_once` are with the engine at a time; while they are, whatever arrives gathers for the next.
    """

    max_batch: int = 32
    window_seconds: float = 0.002
    batches_at_once: int = 1
    max_waiting: int | None = None


@dataclass(slots=True)
class BatchCounts:
    """What became of the queue so far."""

    batches: int = 0
    sentences: int = 0
    largest_batch: int = 0
    refused: int = 0


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A sentence, when it came (on the loop's clock), and who waits for its translation."""

    sentence: Pieces
    arrived: float
    done: asyncio.Future[Pieces]


class BatchQueue:
    """Batches of like beam size, first come, first served. Belongs to the event loop that runs `run`."""

    def __init__(self, engine: Engine, options: BatchOptions) -> None:
        self._engine = engine
        self._options = options
        self._waiting: dict[int, deque[_Waiting]] = {}  # by beam size: only equals can share a batch
        self._num_waiting = 0
        self._arrived = asyncio.Event()
        self._filled = asyncio.Event()
        self._slots = asyncio.Semaphore(options.batches_at_once)
        self._threads = ThreadPoolExecutor(options.batches_at_once, thread_name_prefix="batch")
        self._running: set[asyncio.Future[None]] = set()
        self.counts = BatchCounts()

    def submit(self, sentences: Sequence[Pieces], beam_size: int) -> list[asyncio.Future[Pieces]]:
        """Queue all of these or none. Raises `QueueFull`; an engine's exception becomes that of the futures."""
        limit = self._options.max_waiting
        # A request that is larger than the queue is still taken by an empty one.
        if limit is not None and self._num_waiting and self._num_waiting + len(sentences) > limit:
            self.counts.refused += 1
            raise QueueFull(f"{self._num_waiting} sentences wait, {limit} may: try again in a moment")
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
        """Form batches and have them translated until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._slots.acquire()
                await self._arrived.wait()
                await self._wait_for_company()
                beam_size, batch = self._take()
                running = loop.run_in_executor(self._threads, self._translate, loop, batch, beam_size)
                self._running.add(running)
                running.add_done_callback(self._finish)
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def _wait_for_company(self) -> None:
        """Until the oldest sentence has waited long enough; it may have, while the engine was busy."""
        oldest = self._waiting[self._next_beam_size()]
        self._filled.clear()
        if len(oldest) < self._options.max_batch:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(oldest[0].arrived + self._options.window_seconds):
                    await self._filled.wait()

    def _next_beam_size(self) -> int:
        """That of the oldest sentence."""
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
        # Longest first: engines pad to the longest, and what they cut off a batch is then of like length.
        return beam_size, sorted(batch, key=lambda waiting: -len(waiting.sentence))

    def _translate(self, loop: asyncio.AbstractEventLoop, batch: Sequence[_Waiting], beam_size: int) -> None:
        """On a thread of the pool."""

        def deliver(index: int, translation: Pieces) -> None:
            loop.call_soon_threadsafe(_settle, batch[index].done, translation)

        try:
            self._engine.translate([waiting.sentence for waiting in batch], beam_size, deliver)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to those who wait for this batch
            for waiting in batch:
                loop.call_soon_threadsafe(_fail, waiting.done, error)

    def _finish(self, running: asyncio.Future[None]) -> None:
        self._running.discard(running)
        self._slots.release()


def _settle(future: asyncio.Future[Pieces], translation: Pieces) -> None:
    if not future.done():  # whoever waited may have gone
        future.set_result(translation)


def _fail(future: asyncio.Future[Pieces], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
