"""What beam search does to its arrays in every step, natively where the library was built, or in NumPy.

Both give the same bits. In NumPy a step is some twenty calls on a few dozen numbers, and the calls take the time.
"""

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import load

NEVER = np.float32(-1e9)
"""The sum of a beam that does not exist. A sum below half of it belongs to no hypothesis: it continues such a beam, or
a token that the model or a constraint ruled out."""


class _Arrays(ctypes.Structure):
    """As in source/beams.c."""

    _fields_ = (
        *[(name, ctypes.c_int64) for name in ("beam_size", "max_tokens", "end_token")],
        *[(name, ctypes.c_void_p) for name in ("sums", "tokens", "lengths", "max_lengths", "chosen", "parents")],
        *[(name, ctypes.c_void_p) for name in ("ended_places", "ended_sums", "ended_tokens", "before")],
    )


_library = load()
if _library is not None:
    _library.kvasir_advance_beams.restype = ctypes.c_int64
    _library.kvasir_advance_beams.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2]


@dataclass(frozen=True, slots=True)
class Advance:
    """A step of some requests.

    `tokens` and `parents` [requests, beam_size]: each beam's next token, and the beam it continues. `ended` has, for
    each hypothesis that ended, best first within a request: the request's place, its tokens [num_tokens] and its sum.
    The arrays are valid until the next step.
    """

    tokens: NDArray[np.int32]
    parents: NDArray[np.intp]
    ended: list[tuple[int, NDArray[np.int32], np.float32]]


class RunningBeams:
    """The beams of `capacity` requests, one place each.

    `tokens` [capacity, beam_size, max_tokens], `sums` [capacity, beam_size] of their log-probabilities, `lengths`
    [capacity] in tokens, which may become `max_lengths` [capacity].
    """

    def __init__(self, capacity: int, beam_size: int, max_tokens: int, end_token: int) -> None:
        self.tokens = np.zeros((capacity, beam_size, max_tokens), np.int32)
        self.sums = np.zeros((capacity, beam_size), np.float32)
        self.lengths = np.zeros(capacity, np.int32)
        self.max_lengths = np.zeros(capacity, np.int32)
        self._end_token = end_token
        self._chosen = np.zeros((capacity, beam_size), np.int32)
        self._parents = np.zeros((capacity, beam_size), np.int64)
        self._ended_places = np.zeros(capacity * beam_size, np.int64)
        self._ended_sums = np.zeros(capacity * beam_size, np.float32)
        self._ended_tokens = np.zeros((capacity * beam_size, max_tokens), np.int32)
        self._places, self._beams = np.arange(capacity), np.arange(beam_size)
        shared = (self.sums, self.tokens, self.lengths, self.max_lengths, self._chosen, self._parents)
        ended = (self._ended_places, self._ended_sums, self._ended_tokens)
        self._before = np.zeros((beam_size, max_tokens), np.int32)  # of one request, while its beams change places
        addresses = [array.ctypes.data for array in (*shared, *ended, self._before)]
        self._arrays = _Arrays(beam_size, max_tokens, end_token, *addresses)
        self._address = ctypes.addressof(self._arrays)

    def advance(self, candidates: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Advance:
        """Continue the beams of the first requests, told their candidates [requests, beam_size, num_candidates].

        1. All continuations are ranked by their sums; the best 2 * beam_size are kept.
        2. Those of the first beam_size of them that end (end token, or as long as may be) are hypotheses.
        3. The best beam_size that do not end run on.

        Raises IndexError for more requests or more tokens than there is room for.
        """
        num, _, num_candidates = candidates.shape
        if num > self.lengths.size:
            raise IndexError(f"{num} requests, and there is room for {self.lengths.size}")
        if _library is None:
            return self._advance_in_numpy(candidates, log_probs)
        candidates, log_probs = np.ascontiguousarray(candidates), np.ascontiguousarray(log_probs)
        num_ended = _library.kvasir_advance_beams(
            self._address, num, num_candidates, candidates.ctypes.data, log_probs.ctypes.data
        )
        if num_ended < 0:
            raise IndexError(f"a request has {self.tokens.shape[2]} tokens, and there is no room for more")
        ended = [
            (place, self._ended_tokens[i, : self.lengths[place]], self._ended_sums[i])
            for i, place in enumerate(self._ended_places[:num_ended].tolist())
        ]
        return Advance(self._chosen[:num], self._parents[:num], ended)

    def _advance_in_numpy(self, candidates: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Advance:
        num, beam_size, num_candidates = candidates.shape
        lengths = self.lengths[:num]
        # Their negatives, for sorting ascends. `take` looks into an array as if it were flat, which is several times as
        # fast as indexing with two arrays or np.take_along_axis.
        costs = np.subtract(-self.sums[:num, :, None], log_probs).reshape(num, -1)
        best = costs.argsort(axis=1, kind="stable")[:, : 2 * beam_size]
        starts = self._places[:num, None]
        flat_best = best + starts * costs.shape[1]
        best_sums = -costs.take(flat_best)
        best_tokens = candidates.take(flat_best)
        best_parents = best // num_candidates
        lengths += 1
        ends = (best_tokens == self._end_token) | (lengths >= self.max_lengths[:num])[:, None]
        ended = []
        for place, rank in np.argwhere((ends & (best_sums > NEVER / 2))[:, :beam_size]).tolist():
            begun = self.tokens[place, best_parents[place, rank], : lengths[place] - 1]
            hypothesis = np.append(begun, best_tokens[place, rank]).astype(np.int32)
            ended.append((place, hypothesis, best_sums[place, rank]))
        # A stable sort brings those that do not end to the front, best first.
        runs_on = ends.argsort(axis=1, kind="stable")[:, :beam_size] + starts * best.shape[1]
        parents = best_parents.take(runs_on)
        chosen = best_tokens.take(runs_on).astype(np.int32)
        self.sums[:num] = best_sums.take(runs_on)
        self.tokens[:num] = self.tokens[starts, parents]
        self.tokens[starts, self._beams, lengths[:, None] - 1] = chosen
        return Advance(chosen, parents, ended)

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp]) -> None:
        """Requests at `movers` take the places `holes`."""
        for array in (self.tokens, self.sums, self.lengths, self.max_lengths):
            array[holes] = array[movers]
