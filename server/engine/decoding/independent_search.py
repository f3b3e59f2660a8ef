"""Independent hypotheses of a request: samples, or alternatives that differ in their first token."""

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.loop_detection import LoopDetector
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, end_hypothesis
from server.interface.request import Hypothesis, SentenceParams


class IndependentSearch:
    """Search of `beam_size` hypotheses a request, one row each, whose only candidate the request's decoder selects.

    A hypothesis that has ended keeps its row, and its candidates are ignored, until all of its request have ended.
    """

    num_candidates = 1
    num_graph_candidates = 1
    needs_scores = True

    def __init__(self, num_hypotheses: int, limits: SearchLimits) -> None:
        self.beam_size = num_hypotheses
        self._limits = limits
        self._num_requests = 0
        capacity = limits.max_requests // num_hypotheses
        per_hypothesis = (capacity, num_hypotheses)
        self._tokens = np.zeros((*per_hypothesis, limits.max_new_tokens), np.int32)
        self._log_probs = np.zeros(per_hypothesis, np.float64)
        self._num_tokens = np.zeros(per_hypothesis, np.int32)
        self._has_ended = np.zeros(per_hypothesis, np.bool_)
        self._has_looped = np.zeros(per_hypothesis, np.bool_)
        self._steps = np.zeros(capacity, np.int32)
        self._params: list[SentenceParams] = []
        self._loops = LoopDetector(capacity)
        self._parents = np.broadcast_to(np.arange(num_hypotheses), per_hypothesis)

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request."""
        index = self._num_requests
        self._num_requests += 1
        self._params.append(params)
        self._loops.add(index, params)
        for array in (self._log_probs, self._num_tokens, self._has_ended, self._has_looped, self._steps):
            array[index] = 0

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Append the next token of each hypothesis."""
        num = self._num_requests
        drawn, gained = tokens[:num, :, 0].astype(np.int32), log_probs[:num, :, 0]
        limits = np.array([params.max_new_tokens for params in self._params])
        at_limit = (self._steps[:num] + 1 >= limits)[:, None]
        if self._limits.forced_end:
            drawn = np.where(at_limit, self._limits.end_token, drawn)
            gained = np.where(at_limit, np.float32(0.0), gained)
        runs = ~self._has_ended[:num]
        self._tokens[np.arange(num)[:, None], np.arange(self.beam_size), self._steps[:num, None]] = drawn
        self._steps[:num] += 1
        self._log_probs[:num] += np.where(runs, gained, 0.0)
        self._num_tokens[:num] += runs
        looping = self._loops.looping(self._tokens[:num], self._steps[:num])
        if looping is not None:
            self._has_looped[:num] |= looping & runs
        self._has_ended[:num] |= (drawn == self._limits.end_token) | at_limit | self._has_looped[:num]
        return Choice(drawn, self._parents[:num], np.logical_and.reduce(self._has_ended[:num], axis=1))

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return the tokens of the hypotheses so far, [beam_size, length]."""
        return self._tokens[index, :, : self._steps[index]]

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return all tokens of a single sample; of several, none is final until the best is known."""
        if self.beam_size > 1:
            return np.empty(0, np.int32)
        return self._tokens[index, 0, : self._num_tokens[index, 0]]

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return samples, best first and possibly equal, or alternatives in the order of their first tokens."""
        hypotheses = [self._hypothesis(index, row) for row in range(self.beam_size)]
        if self._params[index].options.return_alternatives:
            return hypotheses
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)

    def _hypothesis(self, index: int, row: int) -> Hypothesis:
        params = self._params[index]
        return end_hypothesis(
            self._tokens[index, row, : self._num_tokens[index, row]].tolist(),
            float(self._log_probs[index, row]),
            params.options.length_penalty,
            params.max_new_tokens,
            self._limits,
            has_looped=bool(self._has_looped[index, row]),
        )

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`."""
        for array in (
            self._tokens,
            self._log_probs,
            self._num_tokens,
            self._has_ended,
            self._has_looped,
            self._steps,
        ):
            array[holes] = array[movers]
        self._loops.remove(holes, movers)
        for hole, mover in zip(holes, movers, strict=True):
            self._params[hole] = self._params[mover]
        del self._params[num_left:]
        self._num_requests = num_left
