"""Greedy search: the most likely next token in every step."""

from math import nan

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.loop_detection import LoopDetector
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, end_hypothesis
from server.interface.request import Hypothesis, SentenceParams


class GreedySearch:
    """Greedy search of many requests, one row each. A request ends with its end token, at its limit, or in a loop."""

    beam_size = 1
    num_candidates = 1
    num_graph_candidates = 1

    def __init__(self, limits: SearchLimits) -> None:
        self._limits = limits
        self._num_requests = 0
        self._tokens = np.zeros((limits.max_requests, limits.max_new_tokens), np.int32)
        self._lengths = np.zeros(limits.max_requests, np.int32)
        self._max_lengths = np.zeros(limits.max_requests, np.int32)
        self._log_probs = np.zeros(limits.max_requests, np.float64)
        self._penalties = np.zeros(limits.max_requests, np.float32)
        self._wants_score = np.zeros(limits.max_requests, np.bool_)
        self._has_looped = np.zeros(limits.max_requests, np.bool_)
        self._loops = LoopDetector(limits.max_requests)
        self._indices = np.arange(limits.max_requests)
        self._parents = np.zeros((limits.max_requests, 1), np.intp)

    @property
    def needs_scores(self) -> bool:
        """Whether any request returns its score."""
        return bool(self._wants_score[: self._num_requests].any())

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request."""
        index = self._num_requests
        self._num_requests += 1
        self._lengths[index] = 0
        self._max_lengths[index] = params.max_new_tokens
        self._log_probs[index] = 0.0
        self._penalties[index] = params.options.length_penalty
        self._wants_score[index] = params.options.return_scores
        self._has_looped[index] = False
        self._loops.add(index, params)

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Append the best candidate of each request."""
        num = self._num_requests
        chosen = tokens[:num, 0, 0].astype(np.int32)
        gained = log_probs[:num, 0, 0]
        lengths = self._lengths[:num]
        at_limit = lengths + 1 >= self._max_lengths[:num]
        if self._limits.forced_end:
            chosen = np.where(at_limit, self._limits.end_token, chosen)
            gained = np.where(at_limit, np.float32(0.0), gained)
        self._tokens[self._indices[:num], lengths] = chosen
        self._log_probs[:num] += gained
        self._lengths[:num] += 1
        finished = (chosen == self._limits.end_token) | at_limit
        looping = self._loops.looping(self._tokens[:num, None], self._lengths[:num])
        if looping is not None:
            self._has_looped[:num] = looping[:, 0]
            finished |= looping[:, 0]
        return Choice(chosen[:, None], self._parents[:num], finished)

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return the tokens so far, [1, length]."""
        return self._tokens[index, None, : self._lengths[index]]

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return all tokens so far: greedy search never revises one."""
        return self._tokens[index, : self._lengths[index]]

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return the only hypothesis."""
        hypothesis = end_hypothesis(
            self._tokens[index, : self._lengths[index]].tolist(),
            # Other requests may have had the step compute scores; the answer must not depend on them.
            float(self._log_probs[index]) if self._wants_score[index] else nan,
            float(self._penalties[index]),
            int(self._max_lengths[index]),
            self._limits,
            has_looped=bool(self._has_looped[index]),
        )
        return [hypothesis]

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`."""
        for array in (
            self._tokens,
            self._lengths,
            self._max_lengths,
            self._log_probs,
            self._penalties,
            self._wants_score,
            self._has_looped,
        ):
            array[holes] = array[movers]
        self._loops.remove(holes, movers)
        self._num_requests = num_left
