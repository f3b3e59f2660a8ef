"""Order of waiting sentences: clients get equal shares, and rests of long calls take turns with beginnings of calls.

`FairShares` gives each sentence a time, `WaitingQueue` orders sentences by it. While several clients have requests,
none gets more for sending more calls.
"""

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from typing import NamedTuple

from server.interface.request import Request

# A sentence is queued as if it had arrived later than the one before it in its call, by this multiple of the time that
# it takes: long calls of a client take turns, and short ones pass their rests.
_QUEUE_SHARE = 2
_MAX_LEAD_SECONDS = 1.0  # of rests before beginnings that arrive later
_QUEUE_SECONDS = 0.05  # instead, while the pace is unknown
SHORT_CALL = 8
"""Sentences at the beginning of a call; the others are its rest, which does not delay short calls."""


@dataclass(slots=True, eq=False)
class QueuedCall:
    """The sentences of one call in the queue. `next_time` is that of its next sentence; others may be queued later."""

    client: str
    next_time: float
    is_further_round: bool = False
    num_queued: int = 0
    has_begun_rest: bool = False

    @property
    def is_in_rest(self) -> bool:
        """Whether the sentence queued last is past the first `SHORT_CALL` sentences."""
        return self.num_queued > SHORT_CALL and not self.is_further_round


class RestClock:
    """The virtual time of rests: a long call that was alone, and is ahead of its share, does not wait for a later one.

    The time of a rest minus `lead` is the one at which it takes turns with beginnings.
    """

    def __init__(self) -> None:
        self.lead = 0.0
        self._latest = -math.inf

    def clear(self) -> None:
        """Begin again, when nothing is queued."""
        self.lead, self._latest = 0.0, -math.inf

    def take(self, time: float, now: float) -> None:
        """Note that a rest of this time leaves the queue."""
        self._latest = time
        self.lead = max(self.lead, time - now - _MAX_LEAD_SECONDS)

    def begin(self, time: float) -> float:
        """Return when the rest of a call is queued whose beginning ends at this time."""
        return max(time + self.lead, self._latest)


class FairShares:
    """Requests of each client, and the times at which they are queued. Not thread-safe.

    The calls of one client alone are queued as they arrive. When others have requests too, the calls of a client are
    queued at the pace of its share (virtual start times, as in start-time fair queueing), and so are the rests of its
    long calls.
    """

    def __init__(self) -> None:
        self._num_present = Counter[str]()
        self._num_waiting = Counter[str]()
        self._num_rows = Counter[str]()
        self._next_call: dict[str, float] = {}
        self._next_rest: dict[str, float] = {}
        self.rest_clock = RestClock()

    def num_clients(self, client: str) -> int:
        """Return the number of clients with requests, this one included."""
        return len(self._num_present) + (client not in self._num_present)

    def num_waiting(self, client: str) -> int:
        """Return the requests of a client that wait."""
        return self._num_waiting[client]

    def is_below_share(self, client: str, num_rows: int) -> bool:
        """Return whether a client has less than its part of `num_rows`, or of all requested rows if there are more."""
        return self._num_rows[client] * self.num_clients(client) < max(num_rows, self._num_rows.total())

    def start_time(self, client: str, arrived: float) -> float:
        """Return the time at which a call is queued that arrived then."""
        if self.num_clients(client) == 1:
            return arrived
        return max(arrived, self._next_call.get(client, arrived))

    def begin_call(self, client: str, arrived: float, round_of: float | None = None) -> QueuedCall:
        """Return a new call, or a further round of the call that arrived at `round_of`."""
        if round_of is not None:
            return QueuedCall(client, round_of, is_further_round=True)
        return QueuedCall(client, self.start_time(client, arrived))

    def queue(self, call: QueuedCall, num_rows: int, seconds: float) -> float:
        """Count a sentence as waiting and return its time in the queue. Its `seconds` of work are 0 if unknown."""
        client, num_clients = call.client, self.num_clients(call.client)
        seconds = seconds or _QUEUE_SECONDS / _QUEUE_SHARE
        call.num_queued += 1
        if call.is_in_rest and not call.has_begun_rest:
            call.has_begun_rest = True
            call.next_time = self.rest_clock.begin(call.next_time)
        time = call.next_time
        lead = self.rest_clock.lead if call.has_begun_rest else 0.0
        if num_clients > 1 and call.is_in_rest:
            time = max(time, self._next_rest.get(client, time), self._next_call.get(client, time - lead) + lead)
            self._next_rest[client] = time + max(_QUEUE_SHARE, num_clients) * seconds
        else:
            call.next_time += _QUEUE_SHARE * seconds
            begin = time - lead
            self._next_call[client] = max(self._next_call.get(client, begin), begin) + num_clients * seconds
        self._num_present[client] += 1
        self._num_waiting[client] += 1
        self._num_rows[client] += num_rows
        return time

    def admit(self, call: QueuedCall) -> None:
        """Count a sentence as admitted."""
        _subtract(self._num_waiting, call.client)

    def end(self, call: QueuedCall, num_rows: int) -> None:
        """Count a sentence, admitted before, as ended."""
        _subtract(self._num_present, call.client)
        _subtract(self._num_rows, call.client, num_rows)
        if call.client not in self._num_present:
            self._next_call.pop(call.client, None)
            self._next_rest.pop(call.client, None)


def _subtract(counter: Counter[str], name: str, number: int = 1) -> None:
    """Subtract a number, and remove what is zero: names of clients must not accumulate."""
    counter[name] -= number
    if not counter[name]:
        del counter[name]


class _Entry(NamedTuple):
    """A waiting request, ordered by time on the clock of `Timings.arrived`, then by id."""

    seconds: float
    id: int
    request: Request


class WaitingQueue:
    """Requests by the times that `FairShares` gives them. Not thread-safe.

    While both lines wait, rests take turns with beginnings and get no more than half of the work, however many long
    calls there are.
    """

    def __init__(self, rest_clock: RestClock) -> None:
        self._rest_clock = rest_clock
        self._beginnings: list[_Entry] = []  # sorted, as are the rests
        self._rests: list[_Entry] = []
        self._debt = 0  # tokens of beginnings that are due before the next rest
        self.num_rows = 0
        self.num_tokens = 0

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self._beginnings) + len(self._rests)

    @property
    def num_beginnings(self) -> int:
        """Requests not in the rest of a long call."""
        return len(self._beginnings)

    def add(self, request: Request, seconds: float, *, is_rest: bool) -> None:
        """Add a request with this time."""
        insort(self._rests if is_rest else self._beginnings, _Entry(seconds, request.id, request))
        self._count(request, 1)

    @property
    def head(self) -> Request:
        """The request that is next. Raises `IndexError` if there is none."""
        return self._next_line()[0].request

    def take(self, now: float) -> Request:
        """Remove the head and return it. `now` is on the clock of the times."""
        line = self._next_line()
        seconds, _, request = line.pop(0)
        if line is self._rests:
            self._rest_clock.take(seconds, now)
            self._debt = num_tokens(request)
        else:
            self._debt = max(self._debt - num_tokens(request), 0)
        self._count(request, -1)
        return request

    def remove(self, requests: Container[Request]) -> list[Request]:
        """Remove those of these requests that wait, and return them."""
        removed = [
            entry.request for line in (self._beginnings, self._rests) for entry in line if entry.request in requests
        ]
        if removed:
            self._beginnings = [entry for entry in self._beginnings if entry.request not in requests]
            self._rests = [entry for entry in self._rests if entry.request not in requests]
        for request in removed:
            self._count(request, -1)
        return removed

    def num_tokens_before(self, seconds: float) -> int:
        """Return the tokens that are decoded before a beginning of this time: as many of rests as of beginnings."""
        num_before = bisect_left(self._beginnings, (seconds,))
        before = sum([num_tokens(self._beginnings[index].request) for index in range(num_before)])
        return min(2 * before, self.num_tokens) if self._rests else before

    def _next_line(self) -> list[_Entry]:
        if not self._rests or not self._beginnings:
            return self._rests or self._beginnings
        rest_time = self._rests[0].seconds - self._rest_clock.lead
        is_rest_next = not self._debt and rest_time < self._beginnings[0].seconds
        return self._rests if is_rest_next else self._beginnings

    def _count(self, request: Request, sign: int) -> None:
        self.num_rows += sign * request.params.num_rows
        self.num_tokens += sign * num_tokens(request)


def num_tokens(request: Request) -> int:
    """Return the source tokens of a request, once for each row: its part of the work, as `Pace` counts it."""
    return request.params.num_rows * len(request.source)
