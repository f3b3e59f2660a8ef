"""Shares of clients in the queue: while several clients have requests, none gets more for sending more calls."""

import math
from collections import Counter
from dataclasses import dataclass

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
        """Whether the sentence that was queued last is none of those at the beginning."""
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

    The calls of one client alone are queued as they arrive. Beside others, the calls of a client are queued at the pace
    of its share (virtual start times, as in start-time fair queueing), and so are the rests of its long calls.
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
