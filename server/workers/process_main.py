"""What runs in the process of an engine: orders in, steps, reports out, until the pipe ends."""

import gc
import logging
import logging.handlers
import os
import selectors
import signal
import time
from collections import deque
from collections.abc import Iterable
from multiprocessing.connection import Connection

from bundle.loading import Bundle
from server.engine.decoding.search import SearchLimits
from server.engine.engine import Engine
from server.engine.runners.registry import open_runners
from server.engine.scheduler import Admission
from server.engine.warm_up import warm_up
from server.interface.request import Completion, FinishReason, Request
from server.workers.messages import CompletionMessage, EngineSettings, Orders, StatusMessage

_REPORT_SECONDS = 0.1  # a busy engine is heard of this often, whether or not anything has ended


def run_engine(connection: Connection, bundle: Bundle, settings: EngineSettings) -> None:
    """Open the engine and say None, or the exception that prevented it; then decode until the other end closes.

    Signals are for the process that started this one: it drains, and closes the pipe.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if settings.niceness and hasattr(os, "nice"):
        os.nice(settings.niceness)
    logging.getLogger().addHandler(_ToParent(connection))
    try:
        worker = _Worker(connection, bundle, settings)
    except Exception as error:  # noqa: BLE001 - whatever it was, the parent raises it
        connection.send(error)
        return
    connection.send(None)
    gc.collect()
    gc.freeze()
    try:
        while True:
            worker.turn()
    except (EOFError, OSError):  # the parent has closed the pipe, or is gone
        return


class _ToParent(logging.handlers.QueueHandler):
    """Log lines are written by the process that started this one, in its format."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)  # type: ignore[arg-type]  # `enqueue` is all that uses it
        self._connection = connection

    def enqueue(self, record: logging.LogRecord) -> None:
        self._connection.send(record)


class _AdmittedQueue:
    """Stands where an engine has its scheduler: hands on whom the real one, in the other process, has admitted."""

    def __init__(self, max_encoder_tokens: int) -> None:
        self._max_encoder_tokens = max_encoder_tokens
        self._arrived: deque[Request] = deque()
        self._dropped: list[Request] = []
        self._present: dict[int, Request] = {}

    @property
    def is_empty(self) -> bool:
        return not self._arrived and not self._dropped

    def put(self, orders: Orders) -> None:
        for order in orders.admitted:
            self.offer(order.request())
        self._dropped += [self._present[each] for each in orders.dropped if each in self._present]

    def offer(self, request: Request) -> None:
        self._arrived.append(request)
        self._present[request.id] = request

    def admit(self, replica: int, now: float, may_admit: bool = True) -> Admission:
        dropped = [(request, FinishReason.CANCELLED) for request in self._dropped]
        for request in self._dropped:
            self._present.pop(request.id, None)
        self._dropped = []
        admitted: list[Request] = []
        num_tokens = 0
        while may_admit and self._arrived and num_tokens < self._max_encoder_tokens:
            request = self._arrived.popleft()
            if request.id in self._present:
                admitted.append(request)
                num_tokens += len(request.source)
        return Admission(admitted, dropped)

    def retire(self, replica: int, requests: Iterable[Request], now: float) -> None:
        for request in requests:
            self._present.pop(request.id, None)


class _Steps:
    """Steps to be reported."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, float]] = []

    def step(self, rows: int, seconds: float) -> None:
        self.taken.append((rows, seconds))


class _Worker:
    """The engine, and what is between it and the pipe."""

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
        self._inbox = _AdmittedQueue(settings.max_encoder_tokens)
        self._steps = _Steps()
        limits = SearchLimits.of(bundle.config, settings.max_rows)
        self._engine = Engine(runner, self._inbox, limits, time.monotonic, observer=self._steps)
        warm_up(self._engine, self._inbox.offer)
        self._last_report = 0.0
        # Connection.poll makes a selector every time; this is asked before every step.
        self._orders_came = selectors.DefaultSelector()
        self._orders_came.register(connection, selectors.EVENT_READ)

    def turn(self) -> None:
        """Take orders, waiting for them if there is nothing to do; one step; a report if somebody waits for one.

        Raises EOFError when there will be no more orders.
        """
        engine, inbox = self._engine, self._inbox
        is_idle = not engine.num_running and inbox.is_empty
        while is_idle or self._orders_came.select(0):
            if (orders := self._connection.recv()) is None:
                raise EOFError
            inbox.put(orders)
            is_idle = False
        result = engine.step()
        now = time.monotonic()
        is_due = now - self._last_report > _REPORT_SECONDS or not engine.num_running
        if result.completions or result.stream_updates or is_due:
            self._connection.send(
                StatusMessage(
                    [_ended(completion) for completion in result.completions],
                    [(request.id, tokens) for request, tokens in result.stream_updates],
                    self._steps.taken,
                    engine.num_rows_taken,
                )
            )
            self._steps.taken = []
            self._last_report = now


def _ended(completion: Completion) -> CompletionMessage:
    timings = completion.request.timings
    return CompletionMessage(
        completion.request.id,
        completion.hypotheses,
        completion.finish_reason,
        None if completion.error is None else str(completion.error),
        (timings.encoded, timings.seated, timings.first_token, timings.finished),
    )
