"""Several engines behind one asyncio interface: generate, drain, close.

`EnginePool` has one queue for all its engines. A call of `generate` is a `PendingCall`, whose requests a `CallFeeder`
queues part by part; workers complete them from any thread, and `settle` and `stream` deliver to the call's event loop.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from bundle.loading import Bundle
from server.engine.decoding.search import SearchLimits
from server.engine.engine import Engine, EngineObserver, StreamUpdate
from server.engine.fair_queue import QueuedCall
from server.engine.model_runner import ModelRunner
from server.engine.runners.registry import open_runners
from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.client_identity import client_of_call, limits_of_client
from server.interface.errors import Draining, EngineFailed, NoEngine
from server.interface.interruption import yielding_chunks
from server.interface.request import Completion, FinishReason, Request, check_all_tokens
from server.interface.word_tokens import NO_WORDS, WordTokens
from server.text.tokenizers.registry import word_tokens_of
from server.workers.process_main import EngineSettings
from server.workers.process_worker import ProcessWorker
from server.workers.thread_lending import ThreadLending
from server.workers.thread_worker import ThreadWorker


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Number of engines and limits of each. `max_waiting` counts sentences over all engines.

    `max_queue_seconds` is the longest wait for rows that a call may expect, except during a burst. Engines run with
    `niceness` added to that of the process (threads on Linux only), so that the event loop answers without delay. With
    `processes` each engine has its own process and a copy of the weights, and never waits for the Python of another. A
    process that is silent for `heartbeat_limit_seconds` while it has work is killed and started again.

    The last `num_lent` replicas decode only while the other pools of `lending` have no requests.
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
    heartbeat_limit_seconds: float = math.inf
    observe: EngineObserver | None = None
    lending: ThreadLending | None = None
    num_lent: int = 0

    @property
    def num_own_replicas(self) -> int:
        """Replicas that decode whatever other models do."""
        return self.replicas - self.num_lent


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """Status of all engines together; see `EngineStatus`."""

    waiting: int
    running: int
    unfinished: int
    rows_in_use: int
    rows: int
    heartbeat_age_seconds: float
    draining: bool
    has_engine: bool


class PendingCall:
    """The requests of one call, with one future for all of them. Methods are for the event loop's thread.

    A future for each request costs the loop a callback for each: 40 ms when a call of 25,000 lines is cancelled.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests = requests
        self._completions: dict[Request, Completion] = {}
        self._all: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.on_completed: Callable[[int], None] = _ignore_number
        self._settle()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the call. Thread-safe."""
        return self._all.get_loop()

    def has_completed(self, request: Request) -> bool:
        """Return whether a request has a completion."""
        return request in self._completions

    def add(self, completions: Sequence[Completion]) -> None:
        """Take completions, pass their number to `on_completed`, and end the call with the last one."""
        num_before = len(self._completions)
        for completion in completions:
            self._completions.setdefault(completion.request, completion)
        self._settle()
        if not self._all.done():
            self.on_completed(len(self._completions) - num_before)

    async def completions(self) -> list[Completion]:
        """Wait for all completions, and return them in the order of the requests."""
        await self._all
        return [self._completions[request] for request in self._requests]

    def _settle(self) -> None:
        if len(self._completions) == len(self._requests) and not self._all.done():
            self._all.set_result(None)


def _ignore_number(num_completions: int) -> None:
    pass


_PARTS = 8  # of the requests that a call may have in the queue: more are fed when one of these parts is complete


class CallFeeder:
    """Keeps at most `max_present` requests of one call in the queue and in engines. For the event loop's thread."""

    def __init__(
        self,
        scheduler: Scheduler,
        requests: Sequence[Request],
        pending: PendingCall,
        max_present: int,
        wake: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._requests = requests
        self._pending = pending
        self._max_present = max_present
        self._wake = wake
        self._call: QueuedCall | None = None
        self._num_fed = 0
        self._num_present = 0

    def start(self, client: str) -> None:
        """Submit the first requests. Raises `QueueFull`, and then submits none."""
        first = self._requests[: self._max_present]
        self._call = self._scheduler.submit(first, client)
        self._num_fed = self._num_present = len(first)
        if self._num_fed < len(self._requests):
            self._pending.on_completed = self._completed
        self._wake()

    def stop(self) -> None:
        """Submit no more requests."""
        self._num_fed = len(self._requests)

    def _completed(self, number: int) -> None:
        self._num_present -= number
        room = self._max_present - self._num_present
        if self._num_fed == len(self._requests) or room < max(self._max_present // _PARTS, 1):
            return
        more = self._requests[self._num_fed : self._num_fed + room]
        self._num_fed += len(more)
        self._num_present += len(more)
        # Those that a closing pool has answered already are not decoded.
        awaited = [request for request in more if not self._pending.has_completed(request)]
        if awaited:
            self._scheduler.submit(awaited, call=self._call)
            self._wake()


def settle(settled: dict[PendingCall, list[Completion]]) -> None:
    """Add completions to their calls, and report those of requests that are followed.

    One call in each turn of the event loop. Engines complete many at once, and the loop takes a millisecond for each:
    in between it answers the requests that arrive.
    """
    call = next(iter(settled))
    completions = settled.pop(call)
    if settled:
        call.loop.call_soon(settle, settled)
    followed = [each for each in completions if each.request.is_followed and each.hypotheses]
    new = [each for each in followed if not call.has_completed(each.request)]
    call.add(completions)
    for each in new:
        each.report()


def stream(updates: list[StreamUpdate]) -> None:
    """Send newly final tokens to their streams."""
    for request, tokens in updates:
        # After the death of an engine, another one decodes the same tokens from the beginning.
        if request.on_progress is not None and len(tokens) > request.num_streamed:
            request.num_streamed = len(tokens)
            request.on_progress(tokens, False)


_log = logging.getLogger("kvasir.workers")

_DRAIN_POLL_SECONDS = 0.01
_TIMER_SECONDS = 0.01  # after a deadline, when it has passed on every clock
# Rows for each row that may be encoded ahead: enough to share encoder runs, without a second queue.
_ROWS_PER_ROW_AHEAD = 4
_CHECKED_PER_CHUNK = 5000
_RETRY_SECONDS = 2.0  # after a failed attempt to start an engine
_CALL_SHARE = 4  # one call has at most a quarter of the queue


class EnginePool:
    """Engines that share one queue. Methods are for the event loop's thread unless stated otherwise."""

    def __init__(
        self,
        bundle: Bundle,
        runners: Sequence[ModelRunner] | None,
        options: PoolOptions,
        words: WordTokens = NO_WORDS,
    ) -> None:
        """Create an engine in a thread for each runner, or, without runners, `options.replicas` in processes."""
        self.bundle = bundle
        self._words = words  # processes read them from the bundle
        self.options = options
        num_replicas = options.replicas if runners is None else len(runners)
        self._scheduler = Scheduler(
            SchedulerLimits(
                num_replicas=num_replicas,
                max_rows=options.max_rows,
                max_encoder_tokens=options.max_encoder_tokens,
                max_waiting=options.max_waiting,
                max_rows_ahead=-(-options.max_rows // _ROWS_PER_ROW_AHEAD),
                max_queue_seconds=options.max_queue_seconds,
                num_lent=options.num_lent,
            )
        )
        # Enough for all engines to stay busy until more is fed.
        num_engine_rows = num_replicas * (options.max_rows + -(-options.max_rows // _ROWS_PER_ROW_AHEAD))
        self._max_call_sentences = max(options.max_waiting // _CALL_SHARE, 2 * num_engine_rows)
        self._calls: dict[Request, PendingCall] = {}
        self._draining = False
        # Orders `generate` and `close`: a request is completed or rejected, never lost.
        self._admission_lock = threading.Lock()
        self._engines: list[ThreadWorker | ProcessWorker] = []
        for replica in range(num_replicas):
            engine = self._in_a_process(replica) if runners is None else self._in_a_thread(replica, runners[replica])
            self._engines.append(engine)
        self._lending = options.lending

    @property
    def has_requests(self) -> bool:
        """Whether a request waits or runs. Thread-safe."""
        return bool(self._calls)

    def lend(self, is_lent: bool) -> None:
        """Let the lent replicas decode, or not. Thread-safe."""
        self._scheduler.set_lent(is_lent)
        if is_lent:
            self._wake()

    @property
    def has_processes(self) -> bool:
        """Whether the engines run in processes."""
        return any(isinstance(engine, ProcessWorker) for engine in self._engines)

    def _in_a_thread(self, replica: int, runner: ModelRunner) -> ThreadWorker:
        options = self.options
        limits = SearchLimits.of(self.bundle.config, options.max_rows, self._words)
        engine = Engine(runner, self._scheduler, limits, time.monotonic, replica, options.observe)
        return ThreadWorker(engine, self._scheduler, self, replica, options.niceness)

    def _in_a_process(self, replica: int) -> ProcessWorker:
        options = self.options
        settings = EngineSettings(
            options.device, options.threads_per_replica, options.max_rows, options.max_encoder_tokens, options.niceness
        )
        return ProcessWorker(
            self.bundle, settings, self._scheduler, self, replica, options.observe, options.heartbeat_limit_seconds
        )

    @classmethod
    def open(cls, bundle: Bundle, options: PoolOptions) -> "EnginePool":
        """Launch, warm up and start the engines, with the exceptions of `launch` and `warm_up_and_start`."""
        pool = cls.launch(bundle, options)
        pool.warm_up_and_start()
        return pool

    @classmethod
    def launch(cls, bundle: Bundle, options: PoolOptions) -> "EnginePool":
        """Load the graphs, or start the processes that load them.

        Raises `BundleError` if ONNX Runtime cannot load the graphs, and `DeviceUnavailable` if it cannot run them on
        the requested device; with processes, `warm_up_and_start` raises these.
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
        return cls(bundle, runners, options, NO_WORDS if options.processes else word_tokens_of(bundle))

    def warm_up_and_start(self) -> None:
        """Let every engine decode a first sentence, then start all. On an exception, close them and raise it.

        Raises `EngineFailed` and the exceptions of `launch`.
        """
        try:
            for engine in self._engines:
                engine.warm_up()
        except BaseException:
            self.close()
            raise
        self.start()

    def start(self) -> None:
        """Start the threads that step engines or listen to their processes."""
        for engine in self._engines:
            engine.start()
        if self._lending is not None:
            self._lending.add(self)

    def ended(self, completions: Sequence[Completion]) -> None:
        """Set the results of completed requests in their event loops, one call a loop. Thread-safe, for workers."""
        by_loop: dict[asyncio.AbstractEventLoop, dict[PendingCall, list[Completion]]] = {}
        for completion in completions:
            call = self._calls.pop(completion.request, None)
            if call is not None:
                by_loop.setdefault(call.loop, {}).setdefault(call, []).append(completion)
        self._activity_changed()
        for loop, settled in by_loop.items():
            try:
                loop.call_soon_threadsafe(settle, settled)
            except RuntimeError:
                _log.warning(
                    "completions discarded: event loop closed", extra={"completions": sum(map(len, settled.values()))}
                )

    def lost(self, requests: Sequence[Request], why: str) -> None:
        """Decode the requests of an engine that died once more; those that lost two engines may be the cause and fail.

        Requests cancelled in the meantime are ignored.
        """
        awaited = [request for request in requests if request in self._calls]
        failed = [request for request in awaited if request.was_retried]
        retried = [request for request in awaited if not request.was_retried]
        for request in retried:
            request.was_retried = request.accepted_earlier = True
        self._scheduler.submit(retried)
        self._wake()
        errors = [EngineFailed(f"{why}, for the second time") for _ in failed]
        self.ended(
            [
                Completion(request, [], FinishReason.CANCELLED, error)
                for request, error in zip(failed, errors, strict=True)
            ]
        )

    def not_restarted(self) -> None:
        """End all requests if no engine runs: the next attempt to start one may be in vain, too. Thread-safe."""
        if self._has_none:
            unfinished, error = list(self._calls), self._no_engine()
            self._scheduler.cancel(unfinished)
            self.ended([Completion(request, [], FinishReason.CANCELLED, error) for request in unfinished])

    @property
    def _has_none(self) -> bool:
        return all(engine.cannot_start for engine in self._engines)

    def _no_engine(self) -> NoEngine:
        name = self.bundle.config.name
        return NoEngine(f"no engine of the model {name} runs, and none could be started; retry later", _RETRY_SECONDS)

    def progressed(self, updates: Sequence[StreamUpdate]) -> None:
        """Forward newly final tokens to their streams. They arrive before the completion."""
        by_loop: dict[asyncio.AbstractEventLoop, list[StreamUpdate]] = {}
        for update in updates:
            if (call := self._calls.get(update.request)) is not None:
                by_loop.setdefault(call.loop, []).append(update)
        for loop, of_loop in by_loop.items():
            with suppress(RuntimeError):  # the loop is closed; `ended` logs it
                loop.call_soon_threadsafe(stream, of_loop)

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Decode these requests, batched with all others, and return completions in their order.

        `on_progress` of a request receives newly final tokens after each step, and the whole answer as soon as it is
        complete, whether or not the other requests are; then `on_completed` receives the completion.

        Cancelling the awaiting task frees the rows within one step. An expired request has `FinishReason.DEADLINE` and
        no hypotheses. Raises `InvalidRequest` for tokens that the model does not have, `QueueFull` or `Draining` (no
        request is queued then), and the error of a request that failed.
        """
        async for part in yielding_chunks(requests, _CHECKED_PER_CHUNK):
            check_all_tokens(part, self.bundle.config.shapes)
        call = PendingCall(requests)
        calls = dict.fromkeys(requests, call)
        with self._admission_lock:
            if self._draining:
                raise Draining("the server is shutting down and accepts no new requests")
            if self._has_none:
                raise self._no_engine()
            self._calls.update(calls)
        self._activity_changed()
        # Engines drop expired requests in every step, unless they hang or are down.
        deadline_timers = [
            call.loop.call_at(deadline + _TIMER_SECONDS, self._wake)
            for deadline in {request.deadline for request in requests if request.deadline is not None}
        ]
        own_limit = limits_of_client.get().waiting_sentences or self._max_call_sentences
        max_present = min(own_limit, self._max_call_sentences)
        feeder = CallFeeder(self._scheduler, requests, call, max_present, self._wake)
        try:
            feeder.start(client_of_call.get())
            completions = await call.completions()
        except BaseException:
            feeder.stop()
            for request in requests:
                self._calls.pop(request, None)
            self._scheduler.cancel(requests)
            self._wake()
            self._activity_changed()
            raise
        finally:
            for timer in deadline_timers:
                timer.cancel()
        for completion in completions:
            if completion.error is not None:
                raise completion.error
        return completions

    def check_admission(self) -> None:
        """Raise `QueueFull` if a call that begins now would be rejected."""
        if self._has_none:
            raise self._no_engine()
        self._scheduler.check_admission(time.monotonic(), client_of_call.get())

    def _activity_changed(self) -> None:
        if self._lending is not None:
            self._lending.activity_changed(self)

    def _wake(self) -> None:
        for engine in self._engines:
            engine.wake()
            if not self._scheduler.has_news:
                return

    def status(self) -> WorkerStatus:
        """Return the present status of the engines."""
        return WorkerStatus(
            waiting=self._scheduler.num_waiting,
            running=self._scheduler.num_running,
            unfinished=len(self._calls),
            rows_in_use=sum(engine.num_rows_taken for engine in self._engines),
            rows=self.options.max_rows * len(self._engines),
            heartbeat_age_seconds=max(engine.silent_seconds for engine in self._engines),
            draining=self._draining,
            has_engine=any(engine.is_responsive for engine in self._engines),
        )

    async def drain(self, timeout_seconds: float) -> bool:
        """Reject new requests and wait for the others; return whether all of them completed in time."""
        self._draining = True
        give_up = time.monotonic() + timeout_seconds
        while self._calls and time.monotonic() < give_up:  # noqa: ASYNC110 - engine threads settle them
            await asyncio.sleep(_DRAIN_POLL_SECONDS)
        return not self._calls

    def close(self) -> None:
        """Stop the engines; unfinished requests fail with `Draining`. Thread-safe."""
        with self._admission_lock:
            self._draining = True
        error = Draining("the server stopped before this request was complete; send it again")
        self.ended([Completion(request, [], FinishReason.CANCELLED, error) for request in list(self._calls)])
        self._scheduler.close()
        for engine in self._engines:
            engine.close()
        if self._lending is not None:
            self._lending.remove(self)
