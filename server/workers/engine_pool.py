"""Engines behind one asyncio face: generate, drain, close."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bundle.loading import Bundle
from server.engine.decoding.search import SearchLimits
from server.engine.engine import Engine, EngineObserver
from server.engine.model_runner import ModelRunner
from server.engine.runners.registry import open_runners
from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.errors import Draining, EngineFailed
from server.interface.request import Completion, FinishReason, Request
from server.workers.messages import EngineSettings
from server.workers.process_worker import ProcessWorker
from server.workers.thread_worker import ThreadWorker

_log = logging.getLogger("kvasir.workers")

_DRAIN_POLL_SECONDS = 0.01
_ALARM_SECONDS = 0.01  # after a deadline, when it has passed on every clock
# For every so many rows, one request may be encoded ahead of its row: enough to share encoder runs, no second queue.
_ROWS_A_ROW_AHEAD = 4


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """How many engines, and how much each may take on. `max_waiting` counts sentences over all of them.

    `max_queue_seconds` is what a call may expect to wait for rows, unless a longer wait has only just begun. Engines
    run with `niceness` added to that of the process (threads only on Linux), so that an event loop beside them answers
    at once. With `processes` each engine has a process of its own, and a copy of the weights: no Python of one waits
    for that of another.
    """

    replicas: int = 1
    threads_per_replica: int = 1
    max_rows: int = 64
    max_waiting: int = 1024
    max_encoder_tokens: int = 512
    device: str = "cpu"
    max_queue_seconds: float = math.inf
    niceness: int = 0
    processes: bool = False
    observe: EngineObserver | None = None


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """A glance at the engines. `heartbeat_age_seconds` is the age of the oldest sign of life, see `Generator`."""

    waiting: int
    running: int
    rows_in_use: int
    rows: int
    heartbeat_age_seconds: float
    draining: bool


class EnginePool:
    """Engines that share one queue. Methods belong to the event loop's thread unless they say otherwise."""

    def __init__(self, bundle: Bundle, runners: Sequence[ModelRunner] | None, options: PoolOptions) -> None:
        """An engine for each runner; None are as many as `options` say, each in a process of its own."""
        self.bundle = bundle
        self._options = options
        num_replicas = options.replicas if runners is None else len(runners)
        self._scheduler = Scheduler(
            SchedulerLimits(
                num_replicas=num_replicas,
                max_rows=options.max_rows,
                max_encoder_tokens=options.max_encoder_tokens,
                max_waiting=options.max_waiting,
                max_rows_ahead=-(-options.max_rows // _ROWS_A_ROW_AHEAD),
                max_queue_seconds=options.max_queue_seconds,
            )
        )
        self._futures: dict[Request, asyncio.Future[Completion]] = {}
        self._draining = False
        self._entrance = threading.Lock()  # whoever comes in while it closes is answered with the others, or refused
        self._engines: list[ThreadWorker | ProcessWorker] = []
        for replica in range(num_replicas):
            engine = self._in_a_process(replica) if runners is None else self._in_a_thread(replica, runners[replica])
            self._engines.append(engine)

    @property
    def has_processes(self) -> bool:
        """Whether its engines have processes of their own."""
        return any(isinstance(engine, ProcessWorker) for engine in self._engines)

    def _in_a_thread(self, replica: int, runner: ModelRunner) -> ThreadWorker:
        options, limits = self._options, SearchLimits.of(self.bundle.config, self._options.max_rows)
        engine = Engine(runner, self._scheduler, limits, time.monotonic, replica, options.observe)
        return ThreadWorker(engine, self._scheduler, self, replica, options.niceness)

    def _in_a_process(self, replica: int) -> ProcessWorker:
        options = self._options
        settings = EngineSettings(
            options.device, options.threads_per_replica, options.max_rows, options.max_encoder_tokens, options.niceness
        )
        return ProcessWorker(self.bundle, settings, self._scheduler, self, replica, options.observe)

    @classmethod
    def open(cls, bundle: Bundle, options: PoolOptions) -> "EnginePool":
        """Launch, warm up and start them. Raises what these raise."""
        replicas = cls.launch(bundle, options)
        replicas.warm_up_and_start()
        return replicas

    @classmethod
    def launch(cls, bundle: Bundle, options: PoolOptions) -> "EnginePool":
        """Load the graphs, or start the processes that will.

        Raises `BundleError` when ONNX Runtime cannot load the graphs, and `DeviceUnavailable` when it would run them
        elsewhere than asked; processes do so when they warm up.
        """
        runners = None
        if not options.processes:
            runners = open_runners(
                bundle,
                options.device,
                replicas=options.replicas,
                threads=options.threads_per_replica,
                max_rows=options.max_rows,
                max_encoder_tokens=options.max_encoder_tokens,
            )
        return cls(bundle, runners, options)

    def warm_up_and_start(self) -> None:
        """Every engine decodes its first sentence, then all start. Closes them and raises what prevents it.

        Besides what `launch` raises, that is `EngineFailed`.
        """
        try:
            for engine in self._engines:
                engine.warm_up()
        except BaseException:
            self.close()
            raise
        self.start()

    def start(self) -> None:
        """Start the threads that step engines, or listen to their processes."""
        for engine in self._engines:
            engine.start()

    def ended(self, completions: Sequence[Completion]) -> None:
        """Hand completions to the event loops that wait for them, one call a loop. For engines, from any thread."""
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

    def lost(self, requests: Sequence[Request], why: str) -> None:
        """Decode them again, elsewhere if need be; but who has seen two engines die may be what kills them.

        Nobody waits any more for those that were cancelled meanwhile.
        """
        awaited = [request for request in requests if request in self._futures]
        failed = [request for request in awaited if request.was_lost]
        again = [request for request in awaited if not request.was_lost]
        for request in again:
            request.was_lost = request.continues = True
        self._scheduler.submit(again)
        self._look_for_work()
        self.ended([Completion(each, [], FinishReason.CANCELLED, EngineFailed(f"{why}, twice")) for each in failed])

    def progressed(self, progress: Sequence[tuple[Request, list[int]]]) -> None:
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
        `FinishReason.DEADLINE` and no hypotheses. Raises `InvalidRequest` for tokens that the model does not read,
        `QueueFull` or `Draining` (nothing was taken in either case) and whatever error a request's step failed with.
        """
        for request in requests:
            request.check_tokens(self.bundle.config.shapes)
        loop = asyncio.get_running_loop()
        futures: list[asyncio.Future[Completion]] = [loop.create_future() for _ in requests]
        with self._entrance:
            if self._draining:
                raise Draining("this server is shutting down and takes no new requests")
            self._futures.update(zip(requests, futures, strict=True))
        # Engines look for what has expired whenever they get on; one that hangs or is down does not.
        alarms = [
            loop.call_at(deadline + _ALARM_SECONDS, self._look_for_work)
            for deadline in {request.deadline for request in requests if request.deadline is not None}
        ]
        try:
            self._scheduler.submit(requests)
            self._look_for_work()
            completions = await asyncio.gather(*futures)
        except BaseException:
            for request in requests:
                self._futures.pop(request, None)
            self._scheduler.cancel(requests)
            self._look_for_work()
            raise
        finally:
            for alarm in alarms:
                alarm.cancel()
        for completion in completions:
            if completion.error is not None:
                raise completion.error
        return completions

    def check_admission(self) -> None:
        """Raise `QueueFull` where a call that begins now would be refused."""
        self._scheduler.check_admission(time.monotonic())

    def _look_for_work(self) -> None:
        for engine in self._engines:
            engine.look_for_work()

    def status(self) -> WorkerStatus:
        """How the engines stand right now."""
        return WorkerStatus(
            waiting=self._scheduler.num_waiting,
            running=self._scheduler.num_running,
            rows_in_use=sum(engine.num_rows_taken for engine in self._engines),
            rows=self._options.max_rows * len(self._engines),
            heartbeat_age_seconds=max(engine.silent_seconds for engine in self._engines),
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
        """Stop the engines; whatever they still had fails with `Draining`. May be called from any thread."""
        with self._entrance:
            self._draining = True
        lost = Draining("the server stopped before this request was finished; send it again")
        self.ended([Completion(request, [], FinishReason.CANCELLED, lost) for request in list(self._futures)])
        self._scheduler.close()
        for engine in self._engines:
            engine.close()


def _settle(settled: list[tuple[asyncio.Future[Completion], Completion]]) -> None:
    for future, completion in settled:
        if not future.done():
            future.set_result(completion)
            if completion.request.on_progress is not None and completion.hypotheses:
                completion.request.on_progress(completion.hypotheses[0].token_ids, True)


def _listen(heard: list[tuple[Request, list[int]]]) -> None:
    for request, tokens in heard:
        # Another engine that has taken over begins anew, and comes to the same tokens.
        if request.on_progress is not None and len(tokens) > request.num_told:
            request.num_told = len(tokens)
            request.on_progress(tokens, False)
