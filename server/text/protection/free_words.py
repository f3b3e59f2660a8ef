"""The best position of a tag in a translation: scores of target words, and the words that no other tag has taken.

Only words near those of the tag are compared, because units may have thousands of tags.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from server.interface.interruption import checkpoint

CERTAIN = 1e6  # more than the scores of all words of a unit together
_LONG = 200  # values that arrays take less time for
_OUTSIDE = -0.5  # the score of a word that is not aligned with any word inside the tag

Run = tuple[float, int, int]  # a sum of scores, and the target words from the first to the last, exclusive


@dataclass(frozen=True, slots=True)
class PlacementScores:
    """How much target words belong inside a tag: the scores of those from `first` on, positive ones inside.

    All other words have the score of words outside.
    """

    first: int
    values: Sequence[float]


class TargetWords:
    """The words of a translation by their indices."""

    def __init__(self, is_protected: Sequence[bool]) -> None:
        self._outside = [_OUTSIDE * CERTAIN if protected else _OUTSIDE for protected in is_protected]
        self._unprotected = [index for index, protected in enumerate(is_protected) if not protected]

    def values(self, scores: PlacementScores, low: int, high: int) -> list[float]:
        """Return the score of each word from `low` to `high`."""
        first, last = _own(scores, low, high)
        own = scores.values[first - scores.first : last - scores.first] if first < last else ()
        return [*self._outside[low:first], *own, *self._outside[last:high]]

    def best_run(self, scores: PlacementScores, low: int, high: int) -> Run:
        """Return the run between two indices with the largest sum, the first of several; it has at least one word."""
        first, last = _own(scores, low, high)
        best, best_first, best_last = self._best_outside(low, first)
        own = scores.values[first - scores.first : last - scores.first] if first < last else ()
        total, start, end = _best_run(own)
        if total > best:
            best, best_first, best_last = total, first + start, first + end
        return max((best, best_first, best_last), self._best_outside(last, high), key=lambda run: run[0])

    def has_unprotected(self, low: int, high: int) -> bool:
        """Return whether there is an unprotected word between two indices."""
        return bisect_left(self._unprotected, low) < bisect_left(self._unprotected, high)

    def _best_outside(self, low: int, high: int) -> Run:
        """Return the best run of words outside: a single one, unprotected if there is one."""
        if low >= high:
            return -math.inf, low, low
        index = self._unprotected[bisect_left(self._unprotected, low)] if self.has_unprotected(low, high) else low
        return self._outside[index], index, index + 1


class FreeWords:
    """The words between `low` and `high` that no tag has taken yet, in gaps between those that are taken."""

    def __init__(self, words: TargetWords, low: int, high: int) -> None:
        self._words = words
        self._lows: list[int] = []
        self._gaps: dict[int, tuple[int, int]] = {}  # end and number of each gap by its beginning
        self._oldest: list[tuple[int, int]] = []  # a heap: number and beginning of gaps with unprotected words
        self._num_made = 0
        self._add(low, high)

    def best_run(self, scores: PlacementScores) -> Run | None:
        """Return the best run of all gaps, from the oldest of several; None if no word is left."""
        checkpoint()
        end = scores.first + len(scores.values)
        near = range(max(bisect_right(self._lows, scores.first) - 1, 0), bisect_left(self._lows, end))
        lows = {self._lows[index] for index in near}
        while self._oldest and self._gaps.get(self._oldest[0][1], (0, -1))[1] != self._oldest[0][0]:
            heappop(self._oldest)
        # Gaps elsewhere have the same scores for this tag, so the oldest one represents them.
        lows.update(low for _, low in self._oldest[:1])
        runs = [(self._words.best_run(scores, low, self._gaps[low][0]), self._gaps[low][1]) for low in lows]
        return max(runs, key=lambda run: (run[0][0], -run[1]), default=(None, 0))[0]

    def take(self, first: int, last: int) -> None:
        """Give a tag these words, which are in one gap."""
        index = bisect_right(self._lows, first) - 1
        low = self._lows.pop(index)
        high, _ = self._gaps.pop(low)
        self._add(low, first)
        self._add(last, high)

    def _add(self, low: int, high: int) -> None:
        if low >= high:
            return
        self._num_made += 1
        insort(self._lows, low)
        self._gaps[low] = (high, self._num_made)
        if self._words.has_unprotected(low, high):
            heappush(self._oldest, (self._num_made, low))


def _best_run(values: Sequence[float]) -> Run:
    """Return the run with the largest sum, which has at least one value."""
    best, best_first, best_last = -math.inf, 0, 0
    if len(values) > _LONG:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        lowest = np.minimum.accumulate(sums[:-1])
        end = int((sums[1:] - lowest).argmax())
        start = end - int((sums[end::-1] == lowest[end]).argmax())
        return float(sums[end + 1] - lowest[end]), start, end + 1
    total, start = 0.0, 0
    for index, value in enumerate(values):
        if total <= 0:
            total, start = 0.0, index
        total += value
        if total > best:
            best, best_first, best_last = total, start, index + 1
    return best, best_first, best_last


def _own(scores: PlacementScores, low: int, high: int) -> tuple[int, int]:
    """Return the range of the words between two indices that have scores of their own."""
    first = min(max(low, scores.first), high)
    return first, max(min(high, scores.first + len(scores.values)), first)
