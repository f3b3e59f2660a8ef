"""Detection of degenerate loops: a hypothesis that repeats the same few tokens too often is ended.

A check in every step would slow down every request. A sequence of p tokens that was repeated n times needs about
p * (limit - n) more tokens to exceed the limit. So each check computes when the next one is due, and a sentence without
repetitions is rarely checked: other steps decrement a counter.
"""

import numpy as np
from numpy.typing import NDArray

from server.interface.request import SentenceParams

LONGEST_LOOP = 8  # tokens
_NEVER = np.iinfo(np.int32).max


class LoopDetector:
    """Loop detector of one search, with the same indices. `looping` is called once after every step."""

    def __init__(self, max_requests: int) -> None:
        self._limits = np.zeros(max_requests, np.int32)
        self._due = np.zeros(max_requests, np.int32)  # length at which the next check is due
        self._steps_left = _NEVER  # until the first check may be due

    def add(self, index: int, params: SentenceParams) -> None:
        """Add a request. Its hypotheses end after more than `max_repetitions` repetitions of a sequence; 0: never."""
        limit = params.options.max_repetitions
        self._limits[index] = limit
        self._due[index] = limit + 1 if limit else _NEVER
        self._steps_left = min(self._steps_left, int(self._due[index]))

    def looping(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        """Return which hypotheses [requests, beams] loop, or None if none does.

        `tokens` [requests, beams, max_tokens], `lengths` [requests] of the requests' hypotheses.
        """
        self._steps_left -= 1
        if self._steps_left > 0:
            return None
        due = lengths >= self._due[: lengths.size]
        found = np.zeros(tokens.shape[:2], np.bool_)
        for index in np.flatnonzero(due).tolist():
            length, limit = int(lengths[index]), int(self._limits[index])
            missing = np.stack([_missing(beam[:length], limit) for beam in tokens[index]])
            found[index] = missing <= 0
            self._due[index] = length + max(int(missing[missing > 0].min(initial=limit)), 1)
        self._steps_left = int((self._due[: lengths.size] - lengths).min(initial=_NEVER))
        return found if found.any() else None

    def remove(self, holes: list[int], movers: list[int]) -> None:
        """Move requests from `movers` to `holes`."""
        for array in (self._limits, self._due):
            array[holes] = array[movers]


def _missing(tokens: NDArray[np.int32], limit: int) -> int:
    """Return the least number of tokens until a sequence has more than `limit` repetitions; 0 or less: it has."""
    missing = limit  # a single repeated token
    for size in range(1, min(LONGEST_LOOP, tokens.size - 1) + 1):
        differs = np.flatnonzero(tokens[size:] != tokens[:-size])
        num_repeated = tokens.size - size - (int(differs[-1]) + 1 if differs.size else 0)  # at the end
        missing = min(missing, size * limit - num_repeated)
    return missing
