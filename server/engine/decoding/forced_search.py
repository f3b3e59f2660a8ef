"""Reading tokens that are given: a target prefix before the search begins, or a translation that is to be scored."""

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.search import Choice, EndBonus, SearchLimits
from server.interface.request import Hypothesis, SentenceParams


class ForcedSearch:
    """One row a request. Takes the candidate it is told until all tokens are read; then it has finished here."""

    beam_size = 1
    num_candidates = 1
    takes_graph_candidates = False
    needs_scores = False

    def __init__(self, limits: SearchLimits) -> None:
        self._num_requests = 0
        self._num_decoded = np.zeros(limits.max_requests, np.intp)
        self._num_forced = np.zeros(limits.max_requests, np.intp)
        self._parents = np.zeros((limits.max_requests, 1), np.intp)

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Take one more request."""
        self._num_decoded[self._num_requests] = 0
        self._num_forced[self._num_requests] = len(params.forced_target or params.target_prefix)
        self._num_requests += 1

    def num_decoded(self, index: int) -> int:
        """Return the number of forced tokens decoded so far."""
        return int(self._num_decoded[index])

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """The next token of each request, which is its only candidate."""
        num = self._num_requests
        self._num_decoded[:num] += 1
        finished = self._num_decoded[:num] >= self._num_forced[:num]
        return Choice(tokens[:num, :, 0].astype(np.int32), self._parents[:num], finished)

    def prefixes(self, place: int) -> NDArray[np.int32]:
        """None: what was read is known to whoever gave it."""
        return np.empty((1, 0), np.int32)

    def final_tokens(self, place: int) -> NDArray[np.int32]:
        """None: what is read comes before what is searched."""
        return np.empty(0, np.int32)

    def hypotheses(self, place: int) -> list[Hypothesis]:
        """None: nothing was searched."""
        return []

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp], num_left: int) -> None:
        """Drop requests: those at `movers` take the places `holes`."""
        for array in (self._num_decoded, self._num_forced):
            array[holes] = array[movers]
        self._num_requests = num_left
