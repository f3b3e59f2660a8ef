"""Where in a translation a tag stands best: what speaks for its words, and which words no other tag has.

Looked at are the words near those that a tag had, whatever else there is: units may have thousands of tags.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

CERTAIN = 1e6  # more than all the words of a unit
_AGAINST = -0.5  # what speaks for a word that comes from none inside of a tag

Run = tuple[float, int, int]  # a sum of gains, and the target words from the first to the last, which is not in it


@dataclass(frozen=True, slots=True)
class PlacementScores:
    """What speaks for target words to be inside a tag, or against it, in halves of a word: of those from `first` on.

    All others come from no word inside.
    """

    first: int
    values: Sequence[float]


class TargetWords:
    """The words of a translation by their places."""

    def __init__(self, is_copied: Sequence[bool]) -> None:
        self._against = [_AGAINST * CERTAIN if copied else _AGAINST for copied in is_copied]
        self._told = [place for place, copied in enumerate(is_copied) if not copied]

    def values(self, gains: PlacementScores, low: int, high: int) -> list[float]:
        """The gain of each word from `low` to `high`."""
        first, last = _own(gains, low, high)
        own = gains.values[first - gains.first : last - gains.first] if first < last else ()
        return [*self._against[low:first], *own, *self._against[last:high]]

    def best_run(self, gains: PlacementScores, low: int, high: int) -> Run:
        """The largest sum of neighbours between two places, the first of several; at least one of them."""
        first, last = _own(gains, low, high)
        best, best_first, best_last = self._best_outside(low, first)
        total, start = 0.0, first
        for place in range(first, last):
            if total <= 0:
                total, start = 0.0, place
            total += gains.values[place - gains.first]
            if total > best:
                best, best_first, best_last = total, start, place + 1
        return max((best, best_first, best_last), self._best_outside(last, high), key=lambda run: run[0])

    def has_told(self, low: int, high: int) -> bool:
        """Whether there is a word between two places that is not copied."""
        return bisect_left(self._told, low) < bisect_left(self._told, high)

    def _best_outside(self, low: int, high: int) -> Run:
        """The best of words that are all against it: one alone, and rather one that is not copied."""
        if low >= high:
            return -math.inf, low, low
        place = self._told[bisect_left(self._told, low)] if self.has_told(low, high) else low
        return self._against[place], place, place + 1


class FreeWords:
    """The words between `low` and `high` that no tag has taken yet."""

    def __init__(self, words: TargetWords, low: int, high: int) -> None:
        self._words = words
        self._lows: list[int] = []
        self._gaps: dict[int, tuple[int, int]] = {}  # the end and the number of each by its beginning
        self._oldest: list[tuple[int, int]] = []  # a heap: number and beginning of those with words to spare
        self._num_made = 0
        self._add(low, high)

    def best_run(self, gains: PlacementScores) -> Run | None:
        """The best of all gaps, of several that of the oldest gap; None where no word is left."""
        end = gains.first + len(gains.values)
        near = range(max(bisect_right(self._lows, gains.first) - 1, 0), bisect_left(self._lows, end))
        lows = {self._lows[number] for number in near}
        while self._oldest and self._gaps.get(self._oldest[0][1], (0, -1))[1] != self._oldest[0][0]:
            heappop(self._oldest)
        # FreeWords elsewhere are all alike for this tag, so that one of them stands for the others.
        lows.update(low for _, low in self._oldest[:1])
        runs = [(self._words.best_run(gains, low, self._gaps[low][0]), self._gaps[low][1]) for low in lows]
        return max(runs, key=lambda run: (run[0][0], -run[1]), default=(None, 0))[0]

    def take(self, first: int, last: int) -> None:
        """Let a tag have these words, which are in one gap."""
        number = bisect_right(self._lows, first) - 1
        low = self._lows.pop(number)
        high, _ = self._gaps.pop(low)
        self._add(low, first)
        self._add(last, high)

    def _add(self, low: int, high: int) -> None:
        if low >= high:
            return
        self._num_made += 1
        insort(self._lows, low)
        self._gaps[low] = (high, self._num_made)
        if self._words.has_told(low, high):
            heappush(self._oldest, (self._num_made, low))


def _own(gains: PlacementScores, low: int, high: int) -> tuple[int, int]:
    """The words between two places whose gains are given."""
    first = min(max(low, gains.first), high)
    return first, max(min(high, gains.first + len(gains.values)), first)
