"""Who waits, who is admitted, who is dropped. No tensors, no clock of its own; safe to call from every thread."""

import heapq
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from server.errors import QueueFull
from server.request import FinishReason, Request

_RATE_WINDOW = 256  # finished requests from which the time to clear the queue is estimated
_RETRY_AFTER_SECONDS = (1.0, 60.0)


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """`max_rows` rows and `max_encoder_tokens` source tokens an admission, for each replica.

    `max_rows_ahead` counts the rows of requests that may be admitted, and encoded, before there is room for them.
    """

    num_replicas: int
    max_rows: int
    max_encoder_tokens: int
    max_waiting: int
    max_rows_ahead: int = 0


@dataclass(frozen=True, slots=True)
class Admission:
    """What a replica is to do before its next step."""

    admitted: list[Request]
    dropped: list[tuple[Request, FinishReason]]  # waiting or running, now expired or abandoned


class Scheduler:
    """First come, first served: nobody overtakes a beam request that waits for rows.

    A request reserves a row for each beam or sample from admission to retirement. A replica takes no more than its even
    share of all rows wanted, so that work spreads over the replicas when there is little of it.
    """

    def __init__(self, limits: SchedulerLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._work_arrived = threading.Condition(self._lock)
        self._waiting: deque[Request] = deque()
        self._rows_waiting = 0
        self._running: list[dict[Request, None]] = [{} for _ in range(limits.num_replicas)]
        self._rows_reserved = [0] * limits.num_replicas
        self._present: set[Request] = set()  # waiting or running
        self._doomed: dict[Request, FinishReason] = {}  # present, to be dropped at the next admission
        self._deadlines: list[tuple[float, int, Request]] = []  # a heap; entries of ended requests fall out in time
        self._finish_times: deque[float] = deque(maxlen=_RATE_WINDOW)
        self._is_closed = False

    @property
    def num_waiting(self) -> int:
        """Requests not yet admitted."""
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        """Requests admitted and not yet retired."""
        return sum(len(running) for running in self._running)

    @property
    def num_rows_reserved(self) -> int:
        """Rows promised to running requests, over all replicas."""
        return sum(self._rows_reserved)

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue all of them, or none.

        Raises `QueueFull` when `max_waiting` requests wait already. A call that finds room brings all its sentences, so
        the queue may exceed the limit by one call's.
        """
        widest = max((request.params.num_rows for request in requests), default=0)
        assert widest <= self._limits.max_rows, "a request of more beams than rows would wait for ever"
        with self._lock:
            if not self._present:
                self._finish_times.clear()  # the pace is that of a busy server: hours without work say nothing of it
            if len(self._waiting) >= self._limits.max_waiting:
                raise QueueFull(
                    f"{len(self._waiting)} sentences wait for decoding and {self._limits.max_waiting} may; "
                    "try again later",
                    self._retry_after_seconds(),
                )
            self._waiting.extend(requests)
            self._rows_waiting += sum(request.params.num_rows for request in requests)
            self._present.update(requests)
            for request in requests:
                if request.deadline is not None:
                    heapq.heappush(self._deadlines, (request.deadline, request.id, request))
            self._work_arrived.notify_all()

    def cancel(self, requests: Iterable[Request]) -> None:
        """Drop these at the next admission, if they are still here."""
        with self._lock:
            for request in requests:
                if request in self._present:
                    self._doomed[request] = FinishReason.CANCELLED
            self._work_arrived.notify_all()

    def wait_for_work(self, timeout_seconds: float) -> None:
        """Sleep until something was submitted or cancelled."""
        with self._lock:
            if not self._waiting and not self._doomed and not self._is_closed:
                self._work_arrived.wait(timeout_seconds)

    def close(self) -> None:
        """End every `wait_for_work`, those to come as well: a thread may be on its way into one."""
        with self._lock:
            self._is_closed = True
            self._work_arrived.notify_all()

    def admit(self, replica: int, now: float, may_admit: bool = True) -> Admission:
        """Who joins this replica's batch and who leaves it undone. `now` is on the clock of `Request.deadline`.

        Without `may_admit` nobody joins; requests to be dropped are told all the same.
        """
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= now:
                expired = heapq.heappop(self._deadlines)[2]
                if expired in self._present:
                    self._doomed.setdefault(expired, FinishReason.DEADLINE)
            dropped = self._drop(replica) if self._doomed else []
            admitted: list[Request] = []
            if may_admit and self._waiting:
                share = -(-(sum(self._rows_reserved) + self._rows_waiting) // self._limits.num_replicas)
                num_tokens = 0
                max_reserved = self._limits.max_rows + self._limits.max_rows_ahead
                while self._waiting and self._rows_reserved[replica] < share:
                    request = self._waiting[0]
                    rows = request.params.num_rows
                    num_tokens += len(request.source)
                    if self._rows_reserved[replica] + rows > max_reserved:
                        break
                    if admitted and num_tokens > self._limits.max_encoder_tokens:
                        break
                    self._waiting.popleft()
                    self._rows_waiting -= rows
                    self._rows_reserved[replica] += rows
                    self._running[replica][request] = None
                    request.timings.admitted = now
                    admitted.append(request)
            return Admission(admitted, dropped)

    def retire(self, replica: int, requests: Iterable[Request], now: float) -> None:
        """Take back the rows of requests that ended."""
        with self._lock:
            for request in requests:
                self._forget(replica, request)
                self._finish_times.append(now)

    def _forget(self, replica: int, request: Request) -> None:
        del self._running[replica][request]
        self._rows_reserved[replica] -= request.params.num_rows
        self._present.discard(request)
        self._doomed.pop(request, None)

    def _drop(self, replica: int) -> list[tuple[Request, FinishReason]]:
        """Drop the doomed that wait or run here; those of other replicas are theirs to drop."""
        running = self._running[replica]
        dropped = [(request, reason) for request, reason in self._doomed.items() if request in running]
        for request, _ in dropped:
            self._forget(replica, request)
        waiting = [request for request in self._waiting if request in self._doomed]
        if waiting:
            self._waiting = deque(request for request in self._waiting if request not in self._doomed)
            self._rows_waiting -= sum(request.params.num_rows for request in waiting)
            self._present.difference_update(waiting)
            dropped += [(request, self._doomed.pop(request)) for request in waiting]
        return dropped

    def _retry_after_seconds(self) -> float:
        """How long the queue takes at the pace of the last finished requests."""
        at_least, at_most = _RETRY_AFTER_SECONDS
        if len(self._finish_times) < 2 or self._finish_times[-1] <= self._finish_times[0]:
            return at_least
        pace = (len(self._finish_times) - 1) / (self._finish_times[-1] - self._finish_times[0])
        return min(max(len(self._waiting) / pace, at_least), at_most)
