"""The search for the knee: the highest rate at which enough requests are answered within their objective."""

from loadtest.workload.scenario import Search

_MOST_DOWNWARD = 64.0  # a server that does not hold a 64th of the first rate has no knee worth the time


class KneeSearch:
    """Says which rate to try next, and is told whether it held. Nothing is interpolated: the knee was tried."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._held: float | None = None
        self._missed: float | None = None
        self._bisections_left = search.bisections

    @property
    def knee(self) -> float | None:
        """The highest rate that held so far, requests a second; None while none did."""
        return self._held

    def next_rate(self) -> float | None:
        """The rate to try, requests a second; None when the search is over.

        First each rate is `factor` times the last, until one misses; where not even the first held, downwards by the
        same factor, until one holds. Then the middle between the highest that held and the lowest that missed is tried,
        `bisections` times.
        """
        if self._missed is None:
            if self._held is None:
                return self._search.start_rate
            if self._held >= self._search.max_rate:
                return None
            return min(_rounded(self._held * self._search.factor), self._search.max_rate)
        if self._held is None:
            lower = _rounded(self._missed / self._search.factor)
            return None if lower < self._search.start_rate / _MOST_DOWNWARD else lower
        if self._bisections_left == 0:
            return None
        middle = _rounded((self._held + self._missed) / 2)
        # So close together that their middle is one of them.
        return None if middle in (self._held, self._missed) else middle

    def record(self, rate: float, is_held: bool) -> None:
        """What came of `next_rate`."""
        if self._held is not None and self._missed is not None:
            self._bisections_left -= 1
        if is_held:
            self._held = rate
        else:
            self._missed = rate


def _rounded(rate: float) -> float:
    """Three digits: a knee is not known any better."""
    return float(f"{rate:.3g}")
