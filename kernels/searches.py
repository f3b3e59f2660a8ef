"""Searches in C: steps of running beams, also in NumPy, and whole steps of beam and greedy requests.

Both implementations of a beam step return the same bits. In NumPy it is about twenty calls on a few dozen numbers, and
the calls take the time. `BeamSearch` and `GreedySearch` in server/engine/decoding define the results of whole steps.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.cache_rows import CacheMoves
from kernels.shared_library import INT64, POINTER, SharedArrays, load

NEVER = np.float32(-1e9)
"""The sum of an unused beam. A sum below half of it is not a hypothesis: it continues an unused beam, or a token that
the model or a constraint forbids."""

_TOO_FEW_ROWS = -2

_library = load(
    kvasir_advance_beams=(INT64, POINTER, *[INT64] * 2, *[POINTER] * 2),
    kvasir_advance_beam_requests=(INT64, *[POINTER] * 2, *[INT64] * 3, *[POINTER] * 3),
    kvasir_move_beam_request=(None, POINTER, *[INT64] * 2),
    kvasir_advance_greedy=(INT64, *[POINTER] * 2, *[INT64] * 2, *[POINTER] * 3),
    kvasir_move_greedy=(None, POINTER, *[INT64] * 2),
)

IS_AVAILABLE = _library is not None
"""Whether the library was built."""


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
        before = np.zeros((beam_size, max_tokens), np.int32)  # the beams of one request, while they are reordered
        self._struct = SharedArrays((beam_size, max_tokens, end_token), (*shared, *ended, before))
        self._address = self._struct.address

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


class BeamRequests:
    """Up to `capacity` requests with `beam_size` beams each, in arrays with one index a request.

    Of the running beams: `tokens` [capacity, beam_size, max_tokens], `sums` [capacity, beam_size] of log-probabilities,
    `lengths` [capacity] in tokens, at most `max_lengths`. `common_before` [capacity, beam_size, beam_size] is the
    number of tokens that two beams had in common before the last step; `chosen`, `parents` [capacity, beam_size] and
    `finished` [capacity] are its results.

    A request holds its best `beam_size` complete hypotheses, `num_held` so far, best first: `held_scores`, `held_sums`,
    `held_lengths`, `held_looped` [capacity, beam_size] and `held_tokens` [capacity, beam_size, max_tokens]. A score is
    a sum divided by `held_powers` [capacity, max_tokens + 1] of the length; running beams have `running_powers`.
    """

    def __init__(self, capacity: int, beam_size: int, max_tokens: int, end_token: int, forced_end: bool) -> None:
        self.sums = np.zeros((capacity, beam_size), np.float32)
        self.tokens = np.zeros((capacity, beam_size, max_tokens), np.int32)
        self.common = np.zeros((capacity, beam_size, beam_size), np.int32)
        self.common_before = np.zeros((capacity, beam_size, beam_size), np.int32)
        self.lengths = np.zeros(capacity, np.int32)
        self.max_lengths = np.zeros(capacity, np.int32)
        self.early_stopping = np.zeros(capacity, np.bool_)
        self.running_powers = np.ones((capacity, max_tokens + 1), np.float32)
        self.held_powers = np.ones((capacity, max_tokens + 1), np.float32)
        self.loop_limits = np.zeros(capacity, np.int32)
        self.loop_due = np.zeros(capacity, np.int32)
        self.num_held = np.zeros(capacity, np.int32)
        self.held_scores = np.zeros((capacity, beam_size), np.float32)
        self.held_sums = np.zeros((capacity, beam_size), np.float32)
        self.held_lengths = np.zeros((capacity, beam_size), np.int32)
        self.held_looped = np.zeros((capacity, beam_size), np.bool_)
        self.held_tokens = np.zeros((capacity, beam_size, max_tokens), np.int32)
        self.chosen = np.zeros((capacity, beam_size), np.int32)
        self.parents = np.zeros((capacity, beam_size), np.intp)
        self.finished = np.zeros(capacity, np.bool_)
        arrays = (
            *(self.sums, self.tokens, self.common, self.common_before, self.lengths, self.max_lengths),
            *(self.early_stopping, self.running_powers, self.held_powers, self.loop_limits, self.loop_due),
            *(self.num_held, self.held_scores, self.held_sums, self.held_lengths),
            *(self.held_looped, self.held_tokens, self.chosen, self.parents, self.finished),
            np.zeros((beam_size, max_tokens), np.int32),  # the beams of one request while they are reordered
        )
        self._struct = SharedArrays((beam_size, max_tokens, end_token, forced_end), arrays)
        self._address = self._struct.address

    def advance(
        self,
        num: int,
        num_candidates: int,
        num_ranked: int,
        addresses: tuple[int, int, int],
        moves: CacheMoves | None,
    ) -> int:
        """Run a step of the first `num` requests, and return how many are finished.

        `addresses` are those of the candidates' tokens, int64, and log-probabilities, float32 [rows, num_candidates],
        of which the first `num_ranked` count, and of the beams' rows, int64 [num, beam_size]. With `moves`, the rows
        follow in the cache, and those of finished requests are free. Raises IndexError if a request has its maximum of
        tokens, or if the cache has too few rows.
        """
        assert _library is not None
        cache = None if moves is None else moves.address
        num_finished: int = -1
        if num <= len(self.lengths):
            num_finished = _library.kvasir_advance_beam_requests(
                self._address, cache, num, num_candidates, min(num_ranked, num_candidates), *addresses
            )
        if num_finished == _TOO_FEW_ROWS:
            raise IndexError("the cache has too few free rows for the beams of the requests")
        if num_finished < 0:
            raise IndexError(f"`tokens` has the shape {self.tokens.shape}, and one more was needed")
        return num_finished

    def move(self, source: int, destination: int) -> None:
        """Move a request to another index."""
        assert _library is not None
        _library.kvasir_move_beam_request(self._address, source, destination)


class GreedyRequests:
    """Up to `capacity` requests, in arrays with one index each; only the first `num` of them count.

    `tokens` [capacity, max_tokens] are those so far, `lengths` of them and at most `max_lengths`. A request whose
    sequence has more than `loop_limits` repetitions is marked in `has_looped`; the next check is at length `loop_due`.
    `chosen` and `finished` are the results of the last step.
    """

    def __init__(self, capacity: int, max_tokens: int, end_token: int, forced_end: bool) -> None:
        self.tokens = np.zeros((capacity, max_tokens), np.int32)
        self.lengths = np.zeros(capacity, np.int32)
        self.max_lengths = np.zeros(capacity, np.int32)
        self.log_probs = np.zeros(capacity, np.float64)
        self.loop_limits = np.zeros(capacity, np.int32)
        self.loop_due = np.zeros(capacity, np.int32)
        self.has_looped = np.zeros(capacity, np.bool_)
        self.finished = np.zeros(capacity, np.bool_)
        self.chosen = np.zeros((capacity, 1), np.int32)
        arrays = (
            *(self.tokens, self.lengths, self.max_lengths, self.log_probs, self.loop_limits, self.loop_due),
            *(self.has_looped, self.finished, self.chosen),
        )
        self._struct = SharedArrays((max_tokens, end_token, forced_end), arrays)
        self._address = self._struct.address

    def advance(self, num: int, num_candidates: int, addresses: tuple[int, int, int], moves: CacheMoves | None) -> int:
        """Append the first candidate of the first `num` requests, and return how many are finished.

        `addresses` are those of the candidates' tokens, int64, and log-probabilities, float32 [rows, num_candidates],
        and of the requests' rows, int64 [num]. With `moves`, the rows follow in the cache, and those of finished
        requests are free. Raises IndexError if a request has its maximum of tokens.
        """
        assert _library is not None
        cache = None if moves is None else moves.address
        num_finished: int = -1
        if num <= len(self.lengths):
            num_finished = _library.kvasir_advance_greedy(self._address, cache, num, num_candidates, *addresses)
        if num_finished < 0:
            raise IndexError(f"`tokens` has the shape {self.tokens.shape}, and one more was needed")
        return num_finished

    def move(self, source: int, destination: int) -> None:
        """Move a request to another index."""
        assert _library is not None
        _library.kvasir_move_greedy(self._address, source, destination)
