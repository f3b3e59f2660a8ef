"""Searches in C: greedy and beam search, which read the candidates of their rows and move the rows."""

from abc import ABC, abstractmethod
from functools import lru_cache
from math import nan

import numpy as np
from numpy.typing import NDArray

from kernels.cache_rows import CacheMoves
from kernels.searches import NEVER, BeamRequests, GreedyRequests
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, common_prefix, end_hypothesis
from server.engine.model_runner import Candidates
from server.interface.request import Hypothesis, SentenceParams

NEVER_DUE = np.iinfo(np.int32).max


class RowSearch(ABC):
    """A search whose step is one call in C, if all of its requests take the candidates of the graph."""

    def __init__(self, capacity: int) -> None:
        rows = np.arange(capacity)
        self._rows = rows  # kept alive
        self._own_rows = rows.ctypes.data

    def step(self, candidates: Candidates, rows_address: int, moves: CacheMoves | None) -> list[int]:
        """Run one step of every request, move its rows, and return the indices of finished requests, in order.

        `rows_address` is that of the rows [requests, beam_size] in the candidates and in the cache. Rows of finished
        requests are free afterwards.
        """
        addresses = candidates.addresses
        if addresses is not None:
            return self._finished(self._advance(candidates.tokens.shape[1], (*addresses, rows_address), moves))
        tokens, log_probs = _contiguous(candidates.tokens, candidates.log_probs)
        addresses = tokens.ctypes.data, log_probs.ctypes.data
        return self._finished(self._advance(tokens.shape[1], (*addresses, rows_address), moves))

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Choose among the candidates [requests, beam_size, num_candidates], best first."""
        tokens, log_probs = _contiguous(tokens, log_probs)
        self._advance(tokens.shape[2], (tokens.ctypes.data, log_probs.ctypes.data, self._own_rows), None)
        return self._choice()

    @abstractmethod
    def _advance(self, num_candidates: int, addresses: tuple[int, int, int], moves: CacheMoves | None) -> int:
        """Run one step, and return the number of finished requests."""

    @abstractmethod
    def _choice(self) -> Choice:
        """Return the choice of the last step."""

    @abstractmethod
    def _is_finished(self) -> NDArray[np.bool_]:
        """Return which requests [requests] the last step has finished."""

    def _finished(self, num_finished: int) -> list[int]:
        finished: list[int] = self._is_finished().nonzero()[0].tolist() if num_finished else []
        return finished


def _contiguous(
    tokens: NDArray[np.int64], log_probs: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    return np.ascontiguousarray(tokens, np.int64), np.ascontiguousarray(log_probs, np.float32)


@lru_cache(maxsize=64)
def running_powers(length_penalty: float, max_tokens: int) -> NDArray[np.float32]:
    """Return length ** length_penalty for lengths to `max_tokens`, as NumPy computes it for arrays."""
    lengths = np.maximum(np.arange(max_tokens + 1, dtype=np.float32), 1)
    powers: NDArray[np.float32] = lengths ** np.full(max_tokens + 1, length_penalty, np.float32)
    return powers


@lru_cache(maxsize=64)
def held_powers(length_penalty: float, max_tokens: int) -> NDArray[np.float32]:
    """Return length ** length_penalty for lengths to `max_tokens`, as NumPy computes it for single numbers."""
    return np.array([np.float32(max(length, 1)) ** length_penalty for length in range(max_tokens + 1)], np.float32)


class NativeGreedySearch(RowSearch):
    """Search with the results of `GreedySearch`, bit by bit."""

    beam_size = 1
    num_candidates = 1
    num_graph_candidates = 1

    def __init__(self, limits: SearchLimits) -> None:
        super().__init__(limits.max_requests)
        self._limits = limits
        self._params: list[SentenceParams] = []
        self._num_with_scores = 0
        capacity = limits.max_requests
        self._requests = GreedyRequests(capacity, limits.max_new_tokens, limits.end_token, limits.forced_end)
        self._parents = np.zeros((capacity, 1), np.intp)

    @property
    def needs_scores(self) -> bool:
        """Whether any request returns its score."""
        return self._num_with_scores > 0

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request."""
        index, requests = len(self._params), self._requests
        self._params.append(params)
        options = params.options
        self._num_with_scores += options.return_scores
        requests.lengths[index] = 0
        requests.max_lengths[index] = params.max_new_tokens
        requests.log_probs[index] = 0.0
        requests.has_looped[index] = False
        limit = options.max_repetitions
        requests.loop_limits[index] = limit
        requests.loop_due[index] = limit + 1 if limit else NEVER_DUE

    def _advance(self, num_candidates: int, addresses: tuple[int, int, int], moves: CacheMoves | None) -> int:
        return self._requests.advance(len(self._params), num_candidates, addresses, moves)

    def _choice(self) -> Choice:
        num, requests = len(self._params), self._requests
        return Choice(requests.chosen[:num], self._parents[:num], requests.finished[:num])

    def _is_finished(self) -> NDArray[np.bool_]:
        return self._requests.finished[: len(self._params)]

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return the tokens so far, [1, length]."""
        return self.final_tokens(index)[None]

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return all tokens so far: greedy search never revises one."""
        requests = self._requests
        return requests.tokens[index, : requests.lengths[index]]

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return the only hypothesis."""
        params, requests = self._params[index], self._requests
        hypothesis = end_hypothesis(
            self.final_tokens(index).tolist(),
            # Other requests may have had the step compute scores; the answer must not depend on them.
            float(requests.log_probs[index]) if params.options.return_scores else nan,
            float(np.float32(params.options.length_penalty)),
            params.max_new_tokens,
            self._limits,
            has_looped=bool(requests.has_looped[index]),
        )
        return [hypothesis]

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`."""
        for hole, mover in zip(holes, movers, strict=True):
            self._requests.move(mover, hole)
            self._params[hole] = self._params[mover]
        del self._params[num_left:]
        if self._num_with_scores:
            self._num_with_scores = sum([params.options.return_scores for params in self._params])


class NativeBeamSearch(RowSearch):
    """Search with the results of `BeamSearch`, bit by bit, for requests that hold `beam_size` hypotheses without bonus.

    Objects appear when a request is finished.
    """

    needs_scores = True

    def __init__(self, beam_size: int, limits: SearchLimits) -> None:
        super().__init__(limits.max_requests * beam_size)
        self.beam_size = beam_size
        self.num_candidates = self.num_graph_candidates = 2 * beam_size
        self._limits = limits
        self._params: list[SentenceParams] = []
        capacity = limits.max_requests
        self._requests = BeamRequests(capacity, beam_size, limits.max_new_tokens, limits.end_token, limits.forced_end)

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request. Its beams are equal until the first step, so only the first one counts."""
        assert bonus is None, "hypotheses with a bonus are held by `BeamSearch`"
        index, requests = len(self._params), self._requests
        self._params.append(params)
        options = params.options
        requests.sums[index] = NEVER
        requests.sums[index, 0] = 0.0
        requests.lengths[index] = 0
        requests.common[index] = 0
        requests.max_lengths[index] = params.max_new_tokens
        requests.early_stopping[index] = options.early_stopping
        requests.num_held[index] = 0
        limit = options.max_repetitions
        requests.loop_limits[index] = limit
        requests.loop_due[index] = limit + 1 if limit else NEVER_DUE
        requests.running_powers[index] = running_powers(options.length_penalty, self._limits.max_new_tokens)
        requests.held_powers[index] = held_powers(options.length_penalty, self._limits.max_new_tokens)

    def _advance(self, num_candidates: int, addresses: tuple[int, int, int], moves: CacheMoves | None) -> int:
        return self._requests.advance(len(self._params), num_candidates, self.num_candidates, addresses, moves)

    def _choice(self) -> Choice:
        num, requests = len(self._params), self._requests
        return Choice(requests.chosen[:num], requests.parents[:num], requests.finished[:num], requests.common_before)

    def _is_finished(self) -> NDArray[np.bool_]:
        return self._requests.finished[: len(self._params)]

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return the tokens of the running beams, [beam_size, length]."""
        return self._requests.tokens[index, :, : self._requests.lengths[index]]

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return the common prefix of the running beams and the best hypothesis held.

        The answer is one of them: the other hypotheses held are worse than the best one.
        """
        requests = self._requests
        prefixes = self.prefixes(index)
        num_tokens = prefixes.shape[1]
        beams = prefixes[requests.sums[index] > NEVER / 2]
        if requests.num_held[index]:
            best = requests.held_tokens[index, 0, : requests.held_lengths[index, 0]]
            if best[-1] == self._limits.end_token:
                best = best[:-1]
            best = best[:num_tokens]
            beams = np.concatenate([beams[:, : best.size], best[None]])
        return common_prefix(beams)

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return the requested hypotheses of a finished request, best first; fewer if no more are valid."""
        params, requests = self._params[index], self._requests
        return [
            end_hypothesis(
                requests.held_tokens[index, held, : requests.held_lengths[index, held]].tolist(),
                requests.held_sums[index, held],
                params.options.length_penalty,
                params.max_new_tokens,
                self._limits,
                has_looped=bool(requests.held_looped[index, held]),
            )
            for held in range(min(int(requests.num_held[index]), params.num_hypotheses))
        ]

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`."""
        for hole, mover in zip(holes, movers, strict=True):
            self._requests.move(mover, hole)
            self._params[hole] = self._params[mover]
        del self._params[num_left:]
