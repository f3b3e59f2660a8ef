"""Search that decodes forced tokens: a target prefix before the real search, or a translation to score."""

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.search import Choice, EndBonus, SearchLimits
from server.interface.request import Hypothesis, SentenceParams


class ForcedSearch:
    """Forced decoding of many requests, one row each, with the forced token as the only candidate."""

    beam_size = 1
    num_candidates = 1
    num_graph_candidates = 1
    needs_scores = False

    def __init__(self, limits: SearchLimits) -> None:
        self._num_requests = 0
        self._num_decoded = np.zeros(limits.max_requests, np.intp)
        self._num_forced = np.zeros(limits.max_requests, np.intp)
        self._parents = np.zeros((limits.max_requests, 1), np.intp)

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request."""
        self._num_decoded[self._num_requests] = 0
        self._num_forced[self._num_requests] = len(params.forced_target or params.target_prefix)
        self._num_requests += 1

    def num_decoded(self, index: int) -> int:
        """Return the number of forced tokens decoded so far."""
        return int(self._num_decoded[index])

    def skip(self, index: int, num_tokens: int) -> bool:
        """Count tokens that were forced without a step, and return whether they were the last ones."""
        self._num_decoded[index] += num_tokens
        return bool(self._num_decoded[index] >= self._num_forced[index])

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Append the only candidate of each request."""
        num = self._num_requests
        self._num_decoded[:num] += 1
        finished = self._num_decoded[:num] >= self._num_forced[:num]
        return Choice(tokens[:num, :, 0].astype(np.int32), self._parents[:num], finished)

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return an empty array; the request's decoder has the forced tokens."""
        return np.empty((1, 0), np.int32)

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return no tokens: a prefix is reported with the tokens of the search."""
        return np.empty(0, np.int32)

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return no hypotheses; `RequestDecoder.scored` returns that of a forced translation."""
        return []

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`."""
        for array in (self._num_decoded, self._num_forced):
            array[holes] = array[movers]
        self._num_requests = num_left
