"""Greedy search with its step in C."""

from math import nan

import numpy as np
from numpy.typing import NDArray

from kernels.cache_moves import CacheMoves
from kernels.greedy_requests import GreedyRequests
from server.engine.decoding.row_search import NEVER_DUE, RowSearch
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, end_hypothesis
from server.interface.request import Hypothesis, SentenceParams


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
