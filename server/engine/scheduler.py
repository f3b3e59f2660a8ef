"""Request queue and admission control. Thread-safe; uses no tensors; the clock is a parameter.

`Scheduler` is the queue of a server. An engine whose requests were admitted elsewhere, or compete with no others, takes
them from an `ArrivalQueue`.
"""

import heapq
import math
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from server.engine.fair_queue import SHORT_CALL, FairShares, QueuedCall, WaitingQueue, num_tokens
from server.engine.overload import DelayControl, Pace
from server.interface.client_identity import limits_of_client
from server.interface.errors import QueueFull
from server.interface.request import FinishReason, Request

_MAX_EXCESS = 4  # multiple of `max_waiting` that short calls, and clients within their shares, may reach together
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 1.0, 60.0
_AHEAD_SHARE = 2  # part of `max_encoder_tokens` that may wait for rows: it is before all that arrives meanwhile


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Limits of the queue and of each replica.

    An admission takes up to `max_rows` rows and `max_encoder_tokens` source tokens. `max_rows_ahead` counts the rows of
    requests that may be admitted, and encoded, before rows are free for them. `max_queue_seconds` is the longest wait
    for rows that a call may expect, except during a burst. The last `num_lent` replicas decode on lent threads only.
    """

    num_replicas: int
    max_rows: int
    max_encoder_tokens: int
    max_waiting: int
    max_rows_ahead: int = 0
    max_queue_seconds: float = math.inf
    num_lent: int = 0


@dataclass(frozen=True, slots=True)
class Admission:
    """Changes to a replica's batch before its next step."""

    admitted: list[Request]
    dropped: list[tuple[Request, FinishReason]]  # waiting or running, now expired or cancelled


class AdmissionSource(Protocol):
    """The part of `Scheduler` that an engine calls in every step."""

    def admit(self, replica: int, now: float, may_admit: bool = True) -> Admission:
        """Return the requests that join this replica's batch, and those that leave it unfinished."""
        ...

    def retire(self, replica: int, requests: Iterable[Request], now: float) -> None:
        """Free the rows of requests that ended."""
        ...


class Scheduler:
    """Queue of all replicas: first come, first served, where the sentences of different calls and clients take turns.

    A beam request at the head of the queue blocks admission until its rows are free. A request reserves a row for each
    beam or sample from admission to retirement. A replica takes at most its even share of all requested rows, so that
    little work spreads over all replicas.
    """

    def __init__(self, limits: SchedulerLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._work_arrived = threading.Condition(self._lock)
        self._shares = FairShares()
        self._waiting = WaitingQueue(self._shares.rest_clock)
        self._running: list[dict[Request, None]] = [{} for _ in range(limits.num_replicas)]
        self._rows_reserved = [0] * limits.num_replicas
        self._tokens_reserved = [0] * limits.num_replicas
        self._is_absent = [False] * limits.num_replicas
        self._is_lent = True
        self._present: dict[Request, QueuedCall] = {}  # waiting or running
        self._cancelled: dict[Request, FinishReason] = {}  # present, to be dropped at the next admission
        self._deadlines: list[
            tuple[float, int, Request]
        ] = []  # a heap; entries of ended requests stay until they expire
        self._pace = Pace()
        self._delay = DelayControl(limits.max_queue_seconds)
        self._is_closed = False

    @property
    def num_waiting(self) -> int:
        """Requests not yet admitted."""
        return len(self._waiting)

    @property
    def has_news(self) -> bool:
        """Whether an admission may change the batch of a replica."""
        return bool(self._waiting or self._cancelled)

    @property
    def num_running(self) -> int:
        """Requests admitted and not yet retired."""
        return sum(len(running) for running in self._running)

    @property
    def num_rows_reserved(self) -> int:
        """Rows reserved for running requests, over all replicas."""
        return sum(self._rows_reserved)

    def submit(self, requests: Sequence[Request], client: str = "", call: QueuedCall | None = None) -> QueuedCall:
        """Queue all of these requests, or none. Return their call, with which more of its requests can be queued.

        Raises `QueueFull` if `max_waiting` requests are waiting, those of this client its share among them, or if the
        first of these expects a longer wait than `max_queue_seconds` during an overload. Requests that continue a call
        accepted earlier are never rejected. A call is accepted as a whole, so the queue may exceed its limit by one.
        """
        for request in requests:
            assert 1 <= request.params.num_rows <= self._limits.max_rows, "no replica has enough rows for this request"
        with self._lock:
            if not self._present:
                # The pace is that of a busy server: idle hours must not count.
                self._pace.clear()
                self._delay.clear()
                self._shares.rest_clock.clear()
            arrived = requests[0].timings.arrived if requests else 0.0
            if requests and call is None and not requests[0].accepted_earlier:
                self._check_admission(arrived, client, is_long=len(requests) > SHORT_CALL)
            pace = self._pace.usual
            if call is None:
                call = self._shares.begin_call(client, arrived, requests[0].round_of if requests else None)
            for request in requests:
                seconds = num_tokens(request) / pace if pace else 0.0
                time = self._shares.queue(call, request.params.num_rows, seconds)
                self._waiting.add(request, time, is_rest=call.is_in_rest)
            self._present.update(dict.fromkeys(requests, call))
            for request in requests:
                if request.deadline is not None:
                    heapq.heappush(self._deadlines, (request.deadline, request.id, request))
            self._work_arrived.notify_all()
            return call

    def check_admission(self, now: float, client: str = "") -> None:
        """Raise `QueueFull` if `submit` would, for a short call of this client that begins `now`."""
        with self._lock:
            self._check_admission(now, client, is_long=False)

    def cancel(self, requests: Iterable[Request]) -> None:
        """Drop these requests at the next admission, unless they have ended."""
        with self._lock:
            for request in requests:
                if request in self._present:
                    self._cancelled[request] = FinishReason.CANCELLED
            self._work_arrived.notify_all()

    def wait_for_work(self, replica: int, timeout_seconds: float) -> None:
        """Block until requests are submitted, or some of this replica cancelled, or for `timeout_seconds`."""
        with self._lock:
            is_idle = not (self._waiting and self._may_admit(replica)) and self._cancelled.keys().isdisjoint(
                self._running[replica]
            )
            if is_idle and not self._is_closed:
                self._work_arrived.wait(timeout_seconds)

    def set_absent(self, replica: int, is_absent: bool) -> None:
        """Exclude a replica from admission, or include it again; the others take its share of the work."""
        with self._lock:
            self._is_absent[replica] = is_absent

    def set_lent(self, is_lent: bool) -> None:
        """Let the last `num_lent` replicas take requests, or not."""
        with self._lock:
            self._is_lent = is_lent
            self._work_arrived.notify_all()

    def close(self) -> None:
        """End every `wait_for_work`, later calls included: a thread may be about to call it."""
        with self._lock:
            self._is_closed = True
            self._work_arrived.notify_all()

    def admit(self, replica: int, now: float, may_admit: bool = True) -> Admission:
        """Return the requests that join this replica's batch, and those that leave it unfinished.

        `now` is on the clock of `Request.deadline`. Without `may_admit`, or for an absent replica, no request joins.
        """
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= now:
                expired = heapq.heappop(self._deadlines)[2]
                if expired in self._present:
                    self._cancelled.setdefault(expired, FinishReason.DEADLINE)
            dropped = self._drop(replica) if self._cancelled else []
            admitted: list[Request] = []
            if may_admit and self._waiting and self._may_admit(replica):
                num_present = sum(map(self._may_admit, range(self._limits.num_replicas)))
                share = -(-(sum(self._rows_reserved) + self._waiting.num_rows) // num_present)
                num_encoded = 0
                while self._waiting and self._rows_reserved[replica] < share:
                    request = self._waiting.head
                    num_encoded += len(request.source)
                    is_too_much = admitted and num_encoded > self._limits.max_encoder_tokens
                    if is_too_much or not self._has_room(replica, request.params.num_rows):
                        break
                    self._waiting.take(now)
                    self._rows_reserved[replica] += request.params.num_rows
                    self._tokens_reserved[replica] += num_tokens(request)
                    self._running[replica][request] = None
                    self._shares.admit(self._present[request])
                    request.timings.admitted = now
                    admitted.append(request)
            return Admission(admitted, dropped)

    def retire(self, replica: int, requests: Iterable[Request], now: float) -> None:
        """Free the rows of requests that ended."""
        with self._lock:
            for request in requests:
                self._forget(replica, request)
                self._pace.add(now, num_tokens(request))

    def _may_admit(self, replica: int) -> bool:
        is_own = replica < self._limits.num_replicas - self._limits.num_lent
        return not self._is_absent[replica] and (is_own or self._is_lent)

    def _forget(self, replica: int, request: Request) -> None:
        del self._running[replica][request]
        self._rows_reserved[replica] -= request.params.num_rows
        self._tokens_reserved[replica] -= num_tokens(request)
        self._shares.end(self._present.pop(request), request.params.num_rows)
        self._cancelled.pop(request, None)

    def _drop(self, replica: int) -> list[tuple[Request, FinishReason]]:
        """Drop the cancelled requests that wait or run on this replica; other replicas drop their own."""
        running = self._running[replica]
        dropped = [(request, reason) for request, reason in self._cancelled.items() if request in running]
        for request, _ in dropped:
            self._forget(replica, request)
        waiting = self._waiting.remove(self._cancelled)
        for request in waiting:
            call = self._present.pop(request)
            self._shares.admit(call)
            self._shares.end(call, request.params.num_rows)
        dropped += [(request, self._cancelled.pop(request)) for request in waiting]
        return dropped

    def _check_admission(self, now: float, client: str, *, is_long: bool) -> None:
        """Raise `QueueFull` for a call that begins `now` if the queue is full or was too slow for a while.

        Also if the client has a limit of its own and reached it.

        Rests of long calls fill the queue for long calls only: short ones pass them. A full queue still takes calls of
        clients that have less than their share of it.
        """
        waiting, max_waiting = len(self._waiting), self._limits.max_waiting
        own, own_limit = self._shares.num_waiting(client), limits_of_client.get().waiting_sentences
        if own_limit is not None and own >= own_limit:
            retry_after = self._retry_after_seconds()
            message = f"this client has {own} of {own_limit} sentences waiting; retry after {math.ceil(retry_after)} s"
            raise QueueFull(message, retry_after)
        num_clients = self._shares.num_clients(client)
        has_its_share = own >= max_waiting // num_clients
        is_full = (waiting if is_long else self._waiting.num_beginnings) >= max_waiting
        if (is_full and has_its_share) or waiting >= _MAX_EXCESS * max_waiting:
            retry_after = self._retry_after_seconds()
            message = f"the queue is full: {waiting} of {max_waiting} sentences waiting"
            raise QueueFull(f"{message}; retry after {math.ceil(retry_after)} s", retry_after)
        if num_clients > 1 and self._shares.is_below_share(client, self._limits.num_replicas * self._limits.max_rows):
            return  # the queue is long because of others
        delay = self._expected_delay_seconds(self._shares.start_time(client, now))
        # While others have requests, a client above its share has no bursts.
        is_too_long = delay > self._limits.max_queue_seconds if num_clients > 1 else self._delay.rejects(now, delay)
        if is_too_long:
            retry_after, limit = _retry_after(delay), self._limits.max_queue_seconds
            expected = f"the expected wait is {delay:.2f} s of at most {limit:g} s"
            raise QueueFull(f"the queue is too slow: {expected}; retry after {math.ceil(retry_after)} s", retry_after)

    def _expected_delay_seconds(self, now: float) -> float:
        """Return the time until the rows before a request of `now` are free, at the present pace."""
        if not (pace := self._pace.tokens_per_second()):
            return 0.0
        ahead = sum(map(self._num_tokens_ahead, range(self._limits.num_replicas)))
        return (self._waiting.num_tokens_before(now) + ahead) / pace

    def _has_room(self, replica: int, num_rows: int) -> bool:
        """Return whether a replica takes a request, if only to encode it ahead of its rows."""
        max_reserved = self._limits.max_rows + self._limits.max_rows_ahead
        max_ahead = self._limits.max_encoder_tokens // _AHEAD_SHARE
        return self._rows_reserved[replica] + num_rows <= max_reserved and self._num_tokens_ahead(replica) < max_ahead

    def _num_tokens_ahead(self, replica: int) -> int:
        """Return the tokens of requests that this replica has beyond its rows."""
        num_rows = self._rows_reserved[replica]
        ahead = num_rows - self._limits.max_rows
        return self._tokens_reserved[replica] * ahead // num_rows if ahead > 0 else 0

    def _retry_after_seconds(self) -> float:
        """Return the time in which the queue empties at the present pace, within limits."""
        pace = self._pace.tokens_per_second()
        return _retry_after(self._waiting.num_tokens / pace if pace else 0.0)


def _retry_after(seconds: float) -> float:
    return min(max(seconds, _MIN_RETRY_SECONDS), _MAX_RETRY_SECONDS)


class ArrivalQueue:
    """`AdmissionSource` of one engine, without limits, in order of arrival. Not thread-safe.

    An admission takes requests until they have `max_tokens` source tokens.
    """

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._waiting: deque[Request] = deque()  # and requests dropped since, which are not present
        self._present: dict[int, Request] = {}
        self._dropped: list[Request] = []

    @property
    def is_empty(self) -> bool:
        """Whether an admission would change nothing."""
        return not self._waiting and not self._dropped

    def add(self, requests: Sequence[Request]) -> None:
        """Queue requests; those of further rounds of a call go first.

        Otherwise the last calls would go through their rounds when nothing else is left to fill the rows.
        """
        if requests[0].accepted_earlier:
            self._waiting.extendleft(reversed(requests))
        else:
            self._waiting.extend(requests)
        self._present.update((request.id, request) for request in requests)

    def drop(self, ids: Iterable[int]) -> None:
        """Drop the requests with these ids at the next admission, unless they have ended."""
        self._dropped += [self._present.pop(id_) for id_ in ids if id_ in self._present]

    def admit(self, replica: int, now: float, may_admit: bool = True) -> Admission:
        """Return the requests that join the batch, and the dropped ones."""
        dropped, self._dropped = [(request, FinishReason.CANCELLED) for request in self._dropped], []
        admitted: list[Request] = []
        num_admitted = 0
        while may_admit and self._waiting and num_admitted < self._max_tokens:
            request = self._waiting.popleft()
            if request.id in self._present:
                request.timings.admitted = now
                num_admitted += len(request.source)
                admitted.append(request)
        return Admission(admitted, dropped)

    def retire(self, replica: int, requests: Iterable[Request], now: float) -> None:
        """Forget requests that ended."""
        for request in requests:
            self._present.pop(request.id, None)
