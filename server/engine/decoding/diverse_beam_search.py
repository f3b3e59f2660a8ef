"""Diverse beam search (Vijayakumar et al. 2016, arXiv:1610.02424), as Hugging Face's group beam search defines it.

The beams of a request are divided into groups, each with its own beam search. The groups choose one after the other:
a token costs a group `diversity_penalty` for each beam of an earlier group that chose the same token in this step. The
cost remains in the score. The hypotheses of all groups are ranked together.
"""

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.beam_search import BeamSearch
from server.engine.decoding.search import Choice, EndBonus, SearchLimits
from server.interface.request import Hypothesis, SentenceParams

_NO_TOKEN = -1


class DiverseBeamSearch:
    """Diverse beam search of many requests, with `num_groups` groups of equal size in `beam_size` rows each.

    The `2 * beam_size` best continuations of each row are enough for all groups: the earlier groups penalise at most
    `beam_size` minus one group's beams of them, and a group needs twice its number of beams.
    """

    needs_scores = True

    def __init__(self, beam_size: int, num_groups: int, limits: SearchLimits) -> None:
        self.beam_size = beam_size
        self.num_candidates = self.num_graph_candidates = 2 * beam_size
        self._end_token = limits.end_token
        self._group_size = beam_size // num_groups
        self._groups = [BeamSearch(self._group_size, limits) for _ in range(num_groups)]
        self._params: list[SentenceParams] = []
        self._has_finished = np.zeros((num_groups, limits.max_requests), np.bool_)

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request."""
        self._has_finished[:, len(self._params)] = False
        self._params.append(params)
        for group in self._groups:
            group.add(params, bonus)

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Run one step of every group, in order."""
        num = len(self._params)
        penalties = np.array([params.options.diversity_penalty for params in self._params], np.float32)[:, None, None]
        chosen = np.zeros((num, self.beam_size), np.int32)
        counted = np.full((num, self.beam_size), _NO_TOKEN, np.int32)
        parents = np.zeros((num, self.beam_size), np.intp)
        for number, group in enumerate(self._groups):
            start = number * self._group_size
            beams = slice(start, start + self._group_size)
            own_tokens = tokens[:, beams]
            times_chosen = (own_tokens[..., None] == counted[:, None, None, :start]).sum(axis=-1, dtype=np.float32)
            finished = self._has_finished[number, :num]
            choice = group.advance(own_tokens, log_probs[:, beams] - penalties * times_chosen)
            chosen[:, beams] = choice.tokens
            runs_on = ~finished[:, None] & (choice.tokens != self._end_token)
            counted[:, beams] = np.where(runs_on, choice.tokens, _NO_TOKEN)
            parents[:, beams] = choice.parents + start
            finished |= choice.finished
            # A finished group waits for the others; its hypotheses are complete.
            group.stop(finished)
        return Choice(chosen, parents, np.logical_and.reduce(self._has_finished[:, :num]))

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return the tokens of the beams of all groups, [beam_size, length]."""
        return np.concatenate([group.prefixes(index) for group in self._groups])

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return no tokens: groups differ from each other by design."""
        return np.empty(0, np.int32)

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return the requested hypotheses of all groups, best first; two groups may have equal ones."""
        found = [hypothesis for group in self._groups for hypothesis in group.all_hypotheses(index)]
        found.sort(key=lambda hypothesis: -hypothesis.score)
        return found[: self._params[index].num_hypotheses]

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`."""
        for group in self._groups:
            group.remove(holes, movers, num_left)
        self._has_finished[:, holes] = self._has_finished[:, movers]
        for hole, mover in zip(holes, movers, strict=True):
            self._params[hole] = self._params[mover]
        del self._params[num_left:]
