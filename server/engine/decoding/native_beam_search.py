"""Beam search with its step and its hypotheses in C."""

import numpy as np
from numpy.typing import NDArray

from kernels.beam_requests import NEVER, BeamRequests
from kernels.cache_moves import CacheMoves
from server.engine.decoding.row_search import NEVER_DUE, RowSearch, held_powers, running_powers
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, end_hypothesis
from server.interface.request import Hypothesis, SentenceParams


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
        agreed = (beams == beams[:1]).all(axis=0)
        final: NDArray[np.int32] = beams[0, : agreed.size if agreed.all() else int(agreed.argmin())]
        return final

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
