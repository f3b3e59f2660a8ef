"""A guard against degenerate loops: a hypothesis that says the same few tokens over and over is ended.

Looking for loops in every step would cost every request. A sequence of p tokens that has come n times in a row needs
about p * (limit - n) more tokens before it has come too often. So each look says when the next one is due, and a
sentence without repetitions is hardly ever looked at: a step counts down, and that is all.
"""

import numpy as np
from numpy.typing import NDArray

from server.interface.request import SentenceParams

LONGEST_LOOP = 8  # tokens
_NEVER = np.iinfo(np.int32).max


class LoopDetector:
    """For the requests of one search, places as in the search. `looping` is called once after every step."""

    def __init__(self, max_requests: int) -> None:
        self._limits = np.zeros(max_requests, np.int32)
        self._due = np.zeros(max_requests, np.int32)  # the number of tokens at which to look again
        self._steps_left = _NEVER  # until some request is due, at least

    def add(self, place: int, params: SentenceParams) -> None:
        """A request whose hypotheses end when a sequence comes more than `max_repetitions` times in a row; 0: never."""
        limit = params.options.max_repetitions
        self._limits[place] = limit
        self._due[place] = limit + 1 if limit else _NEVER
        self._steps_left = min(self._steps_left, int(self._due[place]))

    def looping(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> NDArray[np.bool_] | None:
        """Which hypotheses [requests, beams] loop, or None when none does.

        `tokens` [requests, beams, max_tokens], `lengths` [requests] of the requests' hypotheses.
        """
        self._steps_left -= 1
        if self._steps_left > 0:
            return None
        due = lengths >= self._due[: lengths.size]
        found = np.zeros(tokens.shape[:2], np.bool_)
        for place in np.flatnonzero(due).tolist():
            length, limit = int(lengths[place]), int(self._limits[place])
            missing = np.stack([_missing(beam[:length], limit) for beam in tokens[place]])
            found[place] = missing <= 0
            self._due[place] = length + max(int(missing[missing > 0].min(initial=limit)), 1)
        self._steps_left = int((self._due[: lengths.size] - lengths).min(initial=_NEVER))
        return found if found.any() else None

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp]) -> None:
        """Requests at `movers` take the places `holes`."""
        for array in (self._limits, self._due):
            array[holes] = array[movers]


def _missing(tokens: NDArray[np.int32], limit: int) -> int:
    """How many tokens are missing until any sequence has come more than `limit` times in a row; 0 or less: none."""
    missing = limit  # one token, said again and again
    for size in range(1, min(LONGEST_LOOP, tokens.size - 1) + 1):
        differs = np.flatnonzero(tokens[size:] != tokens[:-size])
        again = tokens.size - size - (int(differs[-1]) + 1 if differs.size else 0)  # tokens that repeat at the end
        missing = min(missing, size * limit - again)
    return missing
