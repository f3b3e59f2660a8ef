"""Engine threads behind one asyncio face: generate, drain, close."""

import asyncio
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from export.bundle import Bundle
from server.decoding.search import SearchLimits
from server.engine import Engine, EngineObserver
from server.errors import Draining
from server.request import Completion, FinishReason, GenerationParams, Request, Timings
from server.runner import ModelRunner
from server.runners import open_runners
from server.scheduler import Scheduler, SchedulerLimits

_log = logging.getLogger(__name__)

_IDLE_SECONDS = 1.0  # an idle engine wakes this often to show that it is alive
_DRAIN_POLL_SECONDS = 0.01
# For every so many rows, one request may be encoded ahead of its row: enough to share encoder runs, no second queue.
_ROWS_A_ROW_AHEAD = 4


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """How many engines, and how much each may take on. `max_waiting` counts sentences over all of them.

    `max_queue_seconds` is what a call may expect to wait for rows, unless a longer wait has only just begun. Engine
    threads run with `niceness` added to that of the process (Linux), so that an event loop beside them answers at once.
    """

    replicas: int = 1
    threads_per_replica: int = 1
    max_rows: int = 64
    max_waiting: int = 1024
    max_encoder_tokens: int = 512
    device: str = "cpu"
    max_queue_seconds: float = math.inf
    niceness: int = 0
    observe: EngineObserver | None = None


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """A glance at the engines. `heartbeat_age_seconds` is the age of the oldest engine's last turn of its loop."""

    waiting: int
    running: int
    rows_in_use: int
    rows: int
    heartbeat_age_seconds: float
    draining: bool


class Replicas:
    """Engine threads that share one queue and one copy of the weights. Methods belong to the event loop's thread."""

    def __init__(self, bundle: Bundle, runners: Sequence[ModelRunner], options: ReplicaOptions) -> None:
        self.bundle = bundle
        self._options = options
        special, shapes = bundle.config.special_tokens, bundle.config.shapes
        self._scheduler = Scheduler(
            SchedulerLimits(
                num_replicas=len(runners),
                max_rows=options.max_rows,
                max_encoder_tokens=options.max_encoder_tokens,
                max_waiting=options.max_waiting,
                max_rows_ahead=-(-options.max_rows // _ROWS_A_ROW_AHEAD),
                max_queue_seconds=options.max_queue_seconds,
            )
        )
        limits = SearchLimits(
            options.max_rows, shapes.max_target_tokens, special.end_of_sequence, forced_end=special.forced_end
        )
        self._engines = [
            Engine(runner, self._scheduler, limits, time.monotonic, replica, options.observe)
            for replica, runner in enumerate(runners)
        ]
        self._heartbeats = [time.monotonic()] * len(runners)
        self._futures: dict[Request, asyncio.Future[Completion]] = {}
        self._draining = False
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, args=(replica,), name=f"engine-{replica}", daemon=True)
            for replica in range(len(runners))
        ]

    @classmethod
    def open(cls, bundle: Bundle, options: ReplicaOptions) -> "Replicas":
        """Load the graphs, decode one sentence to warm up, and start the threads.

        Raises `BundleError` when ONNX Runtime cannot load the graphs, `DeviceUnavailable` when it would run them
        elsewhere than asked, and `EngineFailed` when they cannot decode that sentence.
        """
        runners = open_runners(
            bundle,
            options.device,
            replicas=options.replicas,
            threads=options.threads_per_replica,
            max_rows=options.max_rows,
            max_encoder_tokens=options.max_encoder_tokens,
        )
        replicas = cls(bundle, runners, options)
        replicas._warm_up()
        replicas.start()
        return replicas

    def start(self) -> None:
        """Start the engine threads."""
        for thread in self._threads:
            thread.start()

    def _warm_up(self) -> None:
        """Every engine decodes the empty sentence, so that the first user does not pay for first-time work."""
        end = self.bundle.config.special_tokens.end_of_sequence
        for engine in self._engines:
            params = GenerationParams(max_new_tokens=2)
            self._scheduler.submit([Request(np.array([end], np.int32), params, Timings(time.monotonic()))])
            while not (completions := engine.step()):
                pass
            if (error := completions[0].error) is not None:
                raise error

    def _run(self, replica: int) -> None:
        if sys.platform == "linux" and self._options.niceness:  # elsewhere, threads have no priority of their own
            niceness = os.getpriority(os.PRIO_PROCESS, 0) + self._options.niceness
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
        engine = self._engines[replica]
        while not self._closed:
            completions = engine.step()
            self._heartbeats[replica] = time.monotonic()
            if engine.progress.found:
                self._tell(engine.progress.found)
            if completions:
                self._deliver(completions)
            if not engine.num_running:
                self._scheduler.wait_for_work(_IDLE_SECONDS)

    def _deliver(self, completions: list[Completion]) -> None:
        """Hand a step's completions to the event loops that wait for them, one call a loop."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Completion], Completion]]] = {}
        for completion in completions:
            future = self._futures.pop(completion.request, None)
            if future is not None:
                by_loop.setdefault(future.get_loop(), []).append((future, completion))
        for loop, settled in by_loop.items():
            try:
                loop.call_soon_threadsafe(_settle, settled)
            except RuntimeError:  # the loop was closed under its requests
                _log.warning("%d answers had no event loop left to go to", len(settled))

    def _tell(self, progress: list[tuple[Request, list[int]]]) -> None:
        """The same for those that stream and go on; what is told before the completion is heard before it."""
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Request, list[int]]]] = {}
        for request, tokens in progress:
            if (future := self._futures.get(request)) is not None:
                by_loop.setdefault(future.get_loop(), []).append((request, tokens))
        for loop, heard in by_loop.items():
            with suppress(RuntimeError):  # the loop was closed under its requests; their answers say so in the log
                loop.call_soon_threadsafe(_listen, heard)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Decode all of these, in company with everybody else; completions in the order of the requests.

        Those with an `on_progress` are told what became final after each step, and their whole answer as soon as it is
        there, however long the others take.

        Cancelling the awaiting task frees their rows within one step. A request that expired comes back with
        `FinishReason.DEADLINE` and no hypotheses. Raises `QueueFull` or `Draining` (nothing was taken) and whatever
        error a request's step failed with.
        """
        if self._draining:
            raise Draining("this server is shutting down and takes no new requests")
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Completion]] = [loop.create_future() for _ in requests]
        self._futures.update(zip(requests, futures, strict=True))
        try:
            self._scheduler.submit(requests)
            completions = await asyncio.gather(*futures)
        except BaseException:
            for request in requests:
                self._futures.pop(request, None)
            self._scheduler.cancel(requests)
            raise
        for completion in completions:
            if completion.error is not None:
                raise completion.error
        return completions

    def status(self) -> ReplicaStatus:
        """How the engines stand right now."""
        return ReplicaStatus(
            waiting=self._scheduler.num_waiting,
            running=self._scheduler.num_running,
            rows_in_use=sum(engine.num_rows_taken for engine in self._engines),
            rows=self._options.max_rows * len(self._engines),
            heartbeat_age_seconds=time.monotonic() - min(self._heartbeats),
            draining=self._draining,
        )

    async def drain(self, timeout_seconds: float) -> bool:
        """Refuse new requests and wait for those already taken. True when all of them were answered in time."""
        self._draining = True
        give_up = time.monotonic() + timeout_seconds
        while self._futures and time.monotonic() < give_up:  # noqa: ASYNC110 - engine threads settle them
            await asyncio.sleep(_DRAIN_POLL_SECONDS)
        return not self._futures

    def close(self) -> None:
        """Stop the threads; whatever they still had fails with `Draining`. May be called from any thread."""
        self._draining = self._closed = True
        self._scheduler.close()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        lost = Draining("the server stopped before this request was finished; send it again")
        self._deliver([Completion(request, [], FinishReason.CANCELLED, lost) for request in list(self._futures)])


def _settle(settled: list[tuple[asyncio.Future[Completion], Completion]]) -> None:
    for future, completion in settled:
        if not future.done():
            future.set_result(completion)
            if completion.request.on_progress is not None and completion.hypotheses:
                completion.request.on_progress(completion.hypotheses[0].token_ids, True)


def _listen(heard: list[tuple[Request, list[int]]]) -> None:
    for request, tokens in heard:
        if request.on_progress is not None:
            request.on_progress(tokens, False)
