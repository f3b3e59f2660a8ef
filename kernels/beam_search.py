"""Beam search steps: native if the library was built, otherwise in NumPy.

Both return the same bits. In NumPy a step is about twenty calls on a few dozen numbers, and the calls take the time.
"""

import ctypes
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import load

NEVER = np.float32(-1e9)
"""The sum of an unused beam. A sum below half of it is no hypothesis: it continues an unused beam, or a token that the
model or a constraint forbids."""


class _Arrays(ctypes.Structure):
    """The struct `Beams` of source/beam_search.c."""

    _fields_ = (
        *[(name, ctypes.c_int64) for name in ("beam_size", "max_tokens", "end_token")],
        *[(name, ctypes.c_void_p) for name in ("sums", "tokens", "lengths", "max_lengths", "chosen", "parents")],
        *[(name, ctypes.c_void_p) for name in ("ended_requests", "ended_sums", "ended_tokens", "before")],
    )


_library = load("kvasir_advance_beams")
if _library is not None:
    _library.kvasir_advance_beams.restype = ctypes.c_int64
    _library.kvasir_advance_beams.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 2]


@dataclass(frozen=True, slots=True)
class Advance:
    """Result of one step.

    `tokens` and `parents` [requests, beam_size]: each beam's next token, and the beam it continues. `ended` has the
    finished hypotheses, best first within a request: index of the request, tokens [num_tokens] and sum. The arrays are
    valid until the next step.
    """

    tokens: NDArray[np.int32]
    parents: NDArray[np.intp]
    ended: list[tuple[int, NDArray[np.int32], np.float32]]


class RunningBeams:
    """Unfinished beams of up to `capacity` requests.

    `tokens` [capacity, beam_size, max_tokens], `sums` [capacity, beam_size] of their log-probabilities, `lengths`
    [capacity] in tokens, at most `max_lengths` [capacity].
    """

    def __init__(self, capacity: int, beam_size: int, max_tokens: int, end_token: int) -> None:
        self.tokens = np.zeros((capacity, beam_size, max_tokens), np.int32)
        self.sums = np.zeros((capacity, beam_size), np.float32)
        self.lengths = np.zeros(capacity, np.int32)
        self.max_lengths = np.zeros(capacity, np.int32)
        self._end_token = end_token
        self._chosen = np.zeros((capacity, beam_size), np.int32)
        self._parents = np.zeros((capacity, beam_size), np.int64)
        self._ended_requests = np.zeros(capacity * beam_size, np.int64)
        self._ended_sums = np.zeros(capacity * beam_size, np.float32)
        self._ended_tokens = np.zeros((capacity * beam_size, max_tokens), np.int32)
        self._indices, self._beams = np.arange(capacity), np.arange(beam_size)
        shared = (self.sums, self.tokens, self.lengths, self.max_lengths, self._chosen, self._parents)
        ended = (self._ended_requests, self._ended_sums, self._ended_tokens)
        self._before = np.zeros((beam_size, max_tokens), np.int32)  # the beams of one request, while they are reordered
        addresses = [array.ctypes.data for array in (*shared, *ended, self._before)]
        self._arrays = _Arrays(beam_size, max_tokens, end_token, *addresses)
        self._address = ctypes.addressof(self._arrays)

    def advance(self, candidates: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Advance:
        """Continue the beams of the first requests with their candidates [requests, beam_size, num_candidates].

        1. Rank all continuations by their sums and keep the best 2 * beam_size.
        2. Return those among the first beam_size that end (end token or maximum length) as hypotheses.
        3. Continue with the best beam_size that do not end.

        Raises IndexError if the requests or tokens exceed the capacity.
        """
        num, _, num_candidates = candidates.shape
        if num > self.lengths.size:
            raise IndexError(f"the number of requests must be at most {self.lengths.size}. Given: {num}")
        if _library is None:
            return self._advance_in_numpy(candidates, log_probs)
        candidates, log_probs = np.ascontiguousarray(candidates), np.ascontiguousarray(log_probs)
        num_ended = _library.kvasir_advance_beams(
            self._address, num, num_candidates, candidates.ctypes.data, log_probs.ctypes.data
        )
        if num_ended < 0:
            raise IndexError(f"a request has {self.tokens.shape[2]} tokens, the maximum")
        ended = [
            (request, self._ended_tokens[i, : self.lengths[request]], self._ended_sums[i])
            for i, request in enumerate(self._ended_requests[:num_ended].tolist())
        ]
        return Advance(self._chosen[:num], self._parents[:num], ended)

    def _advance_in_numpy(self, candidates: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Advance:
        num, beam_size, num_candidates = candidates.shape
        lengths = self.lengths[:num]
        # Negative sums, because sorting ascends. `take` on flat indices is several times as fast as indexing with two
        # arrays or np.take_along_axis.
        costs = np.subtract(-self.sums[:num, :, None], log_probs).reshape(num, -1)
        best = costs.argsort(axis=1, kind="stable")[:, : 2 * beam_size]
        starts = self._indices[:num, None]
        flat_best = best + starts * costs.shape[1]
        best_sums = -costs.take(flat_best)
        best_tokens = candidates.take(flat_best)
        best_parents = best // num_candidates
        lengths += 1
        ends = (best_tokens == self._end_token) | (lengths >= self.max_lengths[:num])[:, None]
        ended = []
        for request, rank in np.argwhere((ends & (best_sums > NEVER / 2))[:, :beam_size]).tolist():
            prefix = self.tokens[request, best_parents[request, rank], : lengths[request] - 1]
            hypothesis = np.append(prefix, best_tokens[request, rank]).astype(np.int32)
            ended.append((request, hypothesis, best_sums[request, rank]))
        # A stable sort moves the continuations that do not end to the front, best first.
        continuing = ends.argsort(axis=1, kind="stable")[:, :beam_size] + starts * best.shape[1]
        parents = best_parents.take(continuing)
        chosen = best_tokens.take(continuing).astype(np.int32)
        self.sums[:num] = best_sums.take(continuing)
        self.tokens[:num] = self.tokens[starts, parents]
        self.tokens[starts, self._beams, lengths[:, None] - 1] = chosen
        return Advance(chosen, parents, ended)

    def remove(self, holes: list[int], movers: list[int]) -> None:
        """Move the requests at `movers` to the indices `holes`."""
        for array in (self.tokens, self.sums, self.lengths, self.max_lengths):
            array[holes] = array[movers]
