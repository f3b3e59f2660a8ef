"""Worker process: its messages, and its main loop: receive messages, run steps, send status, until the pipe ends."""

import gc
import logging
import logging.handlers
import os
import selectors
import signal
import sys
import time
from dataclasses import dataclass, field, fields
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import NamedTuple, Self

import numpy as np

from bundle.loading import Bundle
from server.engine.decoding.search import SearchLimits
from server.engine.engine import Engine, warm_up
from server.engine.runners.registry import open_runners
from server.engine.scheduler import ArrivalQueue
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Completion, FinishReason, Hypothesis, Request, SentenceParams, Timings
from server.text.tokenizers.registry import word_tokens_of

_DEFAULT_PARAMS = SentenceParams()
_RESOLVED_NAMES = tuple(param.name for param in fields(SentenceParams) if param.init and param.name != "options")


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Settings with which a worker process opens its runner; see `PoolOptions`."""

    device: str
    threads: int
    max_rows: int
    max_encoder_tokens: int
    niceness: int


class SubmitMessage(NamedTuple):
    """The parts of a request that its engine needs: pickling a whole one takes several times as long.

    `options` and `params` have the names and values that differ from the defaults. Many requests have the same ones.
    """

    id: int
    source: bytes
    options: tuple[tuple[str, object], ...]
    params: tuple[tuple[str, object], ...]
    streams: bool

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return the message for a request."""
        return cls(request.id, request.source.tobytes(), *_changed(request.params), request.on_progress is not None)

    def request(self) -> Request:
        """Return the request to decode. Its listener, in the other process, is replaced by one that does nothing."""
        params, source = _params(self.options, self.params), np.frombuffer(self.source, np.int32)
        return Request(source, params, Timings(0.0), on_progress=_ignore if self.streams else None, id=self.id)


_Changes = tuple[tuple[str, object], ...]


@lru_cache(maxsize=256)
def _changed(params: SentenceParams) -> tuple[_Changes, _Changes]:
    changed = (
        (name, value) for name in _RESOLVED_NAMES if (value := getattr(params, name)) != getattr(_DEFAULT_PARAMS, name)
    )
    return tuple(params.options.changed().items()), tuple(changed)


@lru_cache(maxsize=256)
def _params(options: _Changes, params: _Changes) -> SentenceParams:
    return SentenceParams(DecodingOptions.given(dict(options)), **dict(params))  # type: ignore[arg-type]  # values of these types


class AdmissionMessage(NamedTuple):
    """Admitted requests, and the ids of requests that the scheduler dropped."""

    admitted: list[SubmitMessage]
    dropped: list[int]


class CompletionMessage(NamedTuple):
    """A completion without its request. `times` are those of `Timings` from `encoded` on, `error` is a message."""

    id: int
    hypotheses: list[Hypothesis]
    finish_reason: FinishReason
    error: str | None
    times: tuple[float, float, float, float]


@dataclass(slots=True)
class StatusMessage:
    """Events since the previous status; `steps` has rows and seconds of each decoder step."""

    ended: list[CompletionMessage] = field(default_factory=list)
    stream_updates: list[tuple[int, list[int]]] = field(default_factory=list)
    steps: list[tuple[int, float]] = field(default_factory=list)
    num_rows_taken: int = 0


def _ignore(tokens: list[int], is_complete: bool) -> None:
    pass


_STATUS_SECONDS = 0.1  # longest time between status messages of a busy engine


def run_engine(connection: Connection, bundle: Bundle, settings: EngineSettings) -> None:
    """Open the engine and send None, or the exception that prevented it; then decode until the other end closes.

    Signals are ignored: the parent process handles them, drains and closes the pipe.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if settings.niceness and hasattr(os, "nice"):
        os.nice(settings.niceness)
    logging.getLogger().addHandler(_ToParent(connection))
    try:
        worker = _Worker(connection, bundle, settings)
    except Exception as error:  # noqa: BLE001 - the parent process raises it
        connection.send(error)
        return
    connection.send(None)
    gc.collect()
    gc.freeze()
    try:
        while True:
            worker.run_step()
    except (EOFError, OSError):  # the parent process closed the pipe or ended
        return
    except BrokenRunner:
        sys.exit(1)


class _ToParent(logging.handlers.QueueHandler):
    """Handler that sends log records to the parent process, which writes them in its format."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)  # type: ignore[arg-type]  # only `enqueue` uses it
        self._connection = connection

    def enqueue(self, record: logging.LogRecord) -> None:
        self._connection.send(record)


class _StepRecorder:
    """Steps since the last status message."""

    def __init__(self) -> None:
        self.recorded: list[tuple[int, float]] = []

    def step(self, rows: int, seconds: float) -> None:
        self.recorded.append((rows, seconds))


class BrokenRunner(Exception):
    """A run of the model has failed; the log has the cause."""


class _Worker:
    """The engine of this process, and its end of the pipe."""

    def __init__(self, connection: Connection, bundle: Bundle, settings: EngineSettings) -> None:
        (runner,) = open_runners(
            bundle,
            settings.device,
            replicas=1,
            threads=settings.threads,
            max_rows=settings.max_rows,
            max_encoder_tokens=settings.max_encoder_tokens,
        )
        self._connection = connection
        self._queue = ArrivalQueue(settings.max_encoder_tokens)
        self._steps = _StepRecorder()
        limits = SearchLimits.of(bundle.config, settings.max_rows, word_tokens_of(bundle))
        self._engine = Engine(runner, self._queue, limits, time.monotonic, observer=self._steps)
        warm_up(self._engine, self._queue.add)
        self._last_status = 0.0
        # Connection.poll creates a selector in every call, and this one is polled before every step.
        self._incoming = selectors.DefaultSelector()
        self._incoming.register(connection, selectors.EVENT_READ)

    def run_step(self) -> None:
        """Receive messages, waiting for one if the engine is idle; run one step; send a status if it is due.

        Raises EOFError at the end of the messages.
        """
        engine, queue = self._engine, self._queue
        is_idle = not engine.num_running and queue.is_empty
        while is_idle or self._incoming.select(0):
            if (message := self._connection.recv()) is None:
                raise EOFError
            if message.admitted:
                queue.add([submitted.request() for submitted in message.admitted])
            queue.drop(message.dropped)
            is_idle = False
        result = engine.step()
        if engine.has_broken_runner:
            # Later steps would fail, too. The parent process decodes the requests elsewhere, and starts another one.
            raise BrokenRunner
        now = time.monotonic()
        is_due = now - self._last_status > _STATUS_SECONDS or not engine.num_running
        if result.completions or result.stream_updates or is_due:
            self._connection.send(
                StatusMessage(
                    [_completion_message(completion) for completion in result.completions],
                    [(request.id, tokens) for request, tokens in result.stream_updates],
                    self._steps.recorded,
                    engine.num_rows_taken,
                )
            )
            self._steps.recorded = []
            self._last_status = now


def _completion_message(completion: Completion) -> CompletionMessage:
    timings = completion.request.timings
    return CompletionMessage(
        completion.request.id,
        completion.hypotheses,
        completion.finish_reason,
        None if completion.error is None else str(completion.error),
        (timings.encoded, timings.assigned, timings.first_token, timings.finished),
    )
