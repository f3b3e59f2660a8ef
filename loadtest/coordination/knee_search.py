"""The search for the knee: the highest rate at which enough requests meet their objective."""

from loadtest.workload.scenario import Search

_MAX_REDUCTION = 64.0  # below a 64th of the first rate the search ends without a knee


class KneeSearch:
    """The next rate to try, given the results so far. Nothing is interpolated: the knee is a rate that was tried."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._held: float | None = None
        self._missed: float | None = None
        self._bisections_left = search.bisections

    @property
    def knee(self) -> float | None:
        """Highest rate that met the objective so far, in requests per second; None if there is none."""
        return self._held

    def next_rate(self) -> float | None:
        """Return the rate to try, in requests per second; None at the end of the search.

        First each rate is `factor` times the last, until one misses. If the first misses, rates fall by the same factor
        until one holds. Then the search bisects between the highest rate that held and the lowest that missed,
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
            return None if lower < self._search.start_rate / _MAX_REDUCTION else lower
        if self._bisections_left == 0:
            return None
        middle = _rounded((self._held + self._missed) / 2)
        # They are so close that their middle is one of them.
        return None if middle in (self._held, self._missed) else middle

    def record(self, rate: float, is_held: bool) -> None:
        """Record the result of `next_rate`."""
        if self._held is not None and self._missed is not None:
            self._bisections_left -= 1
        if is_held:
            self._held = rate
        else:
            self._missed = rate


def _rounded(rate: float) -> float:
    """Round to three digits; a knee is not measured more precisely."""
    return float(f"{rate:.3g}")
