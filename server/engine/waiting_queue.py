"""Sentences that wait for rows, in two lines: beginnings of calls, and the rests of long calls."""

from bisect import bisect_left, insort
from collections.abc import Container
from typing import NamedTuple

from server.engine.fair_shares import RestClock
from server.interface.request import Request


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
        """Requests that are no rests of long calls."""
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
