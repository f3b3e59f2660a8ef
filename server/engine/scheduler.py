"""Who waits, who is admitted, who is dropped. No tensors, no clock of its own; safe to call from every thread."""

import heapq
import math
import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from server.interface.errors import QueueFull
from server.interface.request import FinishReason, Request

_RATE_WINDOW = 256  # finished requests from which the time to clear the queue is estimated
# A sentence of a call waits as if it had arrived later than the one before it, by so many times the time that its rows
# take: whoever asks for one sentence passes the rest of somebody's page, which keeps half of the engine if it must.
# Order follows time, so nobody is passed for ever.
_TURN_SHARE = 2
_TURN_SECONDS = 0.05  # instead, while no pace is known
# A burst is let in, however long its queue: only a queue that has been too long for this long is overload. But what
# comes this soon after a refusal is no burst: a server of which too much is asked would fill its queue again and again.
_OVERLOAD_SECONDS = 0.3
_OVERLOAD_LASTS_SECONDS = 2.0
_RETRY_AFTER_SECONDS = (1.0, 60.0)


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """`max_rows` rows and `max_encoder_tokens` source tokens an admission, for each replica.

    `max_rows_ahead` counts the rows of requests that may be admitted, and encoded, before there is room for them.
    `max_queue_seconds` is the longest wait for rows that a call may expect, unless longer ones have just begun.
    """

    num_replicas: int
    max_rows: int
    max_encoder_tokens: int
    max_waiting: int
    max_rows_ahead: int = 0
    max_queue_seconds: float = math.inf


class _Turn(NamedTuple):
    """A place in the queue: by time, on the clock of `Timings.arrived`, then by age."""

    seconds: float
    id: int
    request: Request


@dataclass(frozen=True, slots=True)
class Admission:
    """What a replica is to do before its next step."""

    admitted: list[Request]
    dropped: list[tuple[Request, FinishReason]]  # waiting or running, now expired or abandoned


class AdmissionSource(Protocol):
    """What an engine asks before every step, and tells after it; see `Scheduler`."""

    def admit(self, replica: int, now: float, may_admit: bool = True) -> Admission:
        """Who joins this replica's batch, and who leaves it undone."""
        ...

    def retire(self, replica: int, requests: Iterable[Request], now: float) -> None:
        """These have ended."""
        ...


class Scheduler:
    """First come, first served, call by call: the first sentences of a call go before the last ones of another.

    Nobody overtakes a beam request whose turn it is and that waits for rows. A request reserves a row for each beam or
    sample from admission to retirement. A replica takes no more than its even share of all rows wanted, so that work
    spreads over the replicas when there is little of it.
    """

    def __init__(self, limits: SchedulerLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._work_arrived = threading.Condition(self._lock)
        self._waiting: list[_Turn] = []  # sorted
        self._rows_waiting = 0
        self._running: list[dict[Request, None]] = [{} for _ in range(limits.num_replicas)]
        self._rows_reserved = [0] * limits.num_replicas
        self._is_absent = [False] * limits.num_replicas
        self._present: set[Request] = set()  # waiting or running
        self._doomed: dict[Request, FinishReason] = {}  # present, to be dropped at the next admission
        self._deadlines: list[tuple[float, int, Request]] = []  # a heap; entries of ended requests fall out in time
        self._finished: deque[tuple[float, int]] = deque(maxlen=_RATE_WINDOW)  # when, and how many rows
        self._rows_finished = 0  # of all of these
        self._congested_since: float | None = None
        self._refused_at = -math.inf
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

        Raises `QueueFull` when `max_waiting` requests wait already, and when the first of these would have to wait
        longer than `max_queue_seconds` as others have for a moment; not if it continues a call that was taken.
        A call that finds room brings all its sentences, so the queue may exceed the limit by one call's.
        """
        for request in requests:
            assert 1 <= request.params.num_rows <= self._limits.max_rows, "it would wait for ever for its rows"
        with self._lock:
            if not self._present:
                # The pace is that of a busy server: hours without work say nothing of it.
                self._finished.clear()
                self._rows_finished = 0
                self._congested_since = None
            if requests and not requests[0].continues:
                self._refuse_overload(requests[0].timings.arrived)
            self._queue(requests)
            self._rows_waiting += sum(request.params.num_rows for request in requests)
            self._present.update(requests)
            for request in requests:
                if request.deadline is not None:
                    heapq.heappush(self._deadlines, (request.deadline, request.id, request))
            self._work_arrived.notify_all()

    def check_admission(self, now: float) -> None:
        """Raise `QueueFull` where `submit` would, for a call that begins `now`."""
        with self._lock:
            self._refuse_overload(now)

    def cancel(self, requests: Iterable[Request]) -> None:
        """Drop these at the next admission, if they are still here."""
        with self._lock:
            for request in requests:
                if request in self._present:
                    self._doomed[request] = FinishReason.CANCELLED
            self._work_arrived.notify_all()

    def wait_for_work(self, replica: int, timeout_seconds: float) -> None:
        """Sleep until something was submitted or cancelled. What other replicas are to drop is no work for this one."""
        with self._lock:
            is_idle = not self._waiting and self._doomed.keys().isdisjoint(self._running[replica])
            if is_idle and not self._is_closed:
                self._work_arrived.wait(timeout_seconds)

    def set_absent(self, replica: int, is_absent: bool) -> None:
        """Whether this replica is away, and its share of the work the others'. It admits nobody then."""
        with self._lock:
            self._is_absent[replica] = is_absent

    def close(self) -> None:
        """End every `wait_for_work`, those to come as well: a thread may be on its way into one."""
        with self._lock:
            self._is_closed = True
            self._work_arrived.notify_all()

    def admit(self, replica: int, now: float, may_admit: bool = True) -> Admission:
        """Who joins this replica's batch and who leaves it undone. `now` is on the clock of `Request.deadline`.

        Without `may_admit`, and to a replica that is absent, nobody joins; who is to be dropped is told all the same.
        """
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= now:
                expired = heapq.heappop(self._deadlines)[2]
                if expired in self._present:
                    self._doomed.setdefault(expired, FinishReason.DEADLINE)
            dropped = self._drop(replica) if self._doomed else []
            admitted: list[Request] = []
            if may_admit and self._waiting and not self._is_absent[replica]:
                share = -(-(sum(self._rows_reserved) + self._rows_waiting) // self._is_absent.count(False))
                num_tokens = 0
                max_reserved = self._limits.max_rows + self._limits.max_rows_ahead
                while self._waiting and self._rows_reserved[replica] < share:
                    request = self._waiting[0].request
                    rows = request.params.num_rows
                    num_tokens += len(request.source)
                    if self._rows_reserved[replica] + rows > max_reserved:
                        break
                    if admitted and num_tokens > self._limits.max_encoder_tokens:
                        break
                    del self._waiting[0]
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
                if len(self._finished) == _RATE_WINDOW:
                    self._rows_finished -= self._finished[0][1]
                self._finished.append((now, request.params.num_rows))
                self._rows_finished += request.params.num_rows

    def _queue(self, requests: Sequence[Request]) -> None:
        pace = self._rows_per_second()
        later = 0.0
        for request in requests:
            insort(self._waiting, _Turn(request.timings.arrived + later, request.id, request))
            later += _TURN_SHARE * request.params.num_rows / pace if pace else _TURN_SECONDS

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
        waiting = [turn.request for turn in self._waiting if turn.request in self._doomed]
        if waiting:
            self._waiting = [turn for turn in self._waiting if turn.request not in self._doomed]
            self._rows_waiting -= sum(request.params.num_rows for request in waiting)
            self._present.difference_update(waiting)
            dropped += [(request, self._doomed.pop(request)) for request in waiting]
        return dropped

    def _refuse_overload(self, now: float) -> None:
        """Raise `QueueFull` for a call that begins `now` if too many wait, or waits have been too long for a while.

        Queues that only begin to be long are let grow, unless others were too long just before, and those that were too
        long count as such until they are half as long: the controlled delay of Nichols and Jacobson (2012,
        doi:10.1145/2208917.2209336), at the entrance.
        """
        if len(self._waiting) >= self._limits.max_waiting:
            raise QueueFull(
                f"{len(self._waiting)} sentences wait for decoding and {self._limits.max_waiting} may; try again later",
                self._retry_after_seconds(),
            )
        limit = self._limits.max_queue_seconds
        wait = self._expected_wait_seconds(now)
        if wait <= limit / 2:
            self._congested_since = None
        elif wait > limit:
            if self._congested_since is None:
                self._congested_since = now
            is_overload = now - self._congested_since >= _OVERLOAD_SECONDS
            if is_overload or now - self._refused_at < _OVERLOAD_LASTS_SECONDS:
                self._refused_at = now
                raise QueueFull(
                    f"a sentence would wait {wait:.2f} seconds for its turn and {limit:g} are allowed; try again later",
                    self._retry_after_seconds(),
                )

    def _expected_wait_seconds(self, now: float) -> float:
        """How long until all rows before a turn of `now` are free, at the present pace."""
        num_before = bisect_left(self._waiting, (now,))
        rows_before = self._rows_waiting * num_before / max(len(self._waiting), 1)
        rows_without_room = sum(max(reserved - self._limits.max_rows, 0) for reserved in self._rows_reserved)
        return (rows_before + rows_without_room) / pace if (pace := self._rows_per_second()) else 0.0

    def _rows_per_second(self) -> float:
        """The pace of the last finished requests, 0 if it is not known."""
        if len(self._finished) < 2 or self._finished[-1][0] <= self._finished[0][0]:
            return 0.0
        seconds = self._finished[-1][0] - self._finished[0][0]
        return (self._rows_finished - self._finished[0][1]) / seconds

    def _retry_after_seconds(self) -> float:
        """How long the queue takes at the pace of the last finished requests."""
        at_least, at_most = _RETRY_AFTER_SECONDS
        pace = self._rows_per_second()
        return min(max(self._rows_waiting / pace, at_least), at_most) if pace else at_least
