"""Diverse beam search (Vijayakumar et al. 2016, arXiv:1610.02424), as Hugging Face's group beam search defines it.

The beams of a request are divided into groups, each a beam search of its own. The groups choose one after the other:
every token costs a group `diversity_penalty` for each beam of an earlier group that has just chosen the same token.
What it costs stays in the score. The answers are those of all groups, the best first.
"""

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.beam_search import BeamSearch
from server.engine.decoding.search import Choice, EndBonus, SearchLimits
from server.interface.request import Hypothesis, SentenceParams

_NO_TOKEN = -1


class DiverseBeamSearch:
    """`beam_size` rows a request, `num_groups` groups of as many beams.

    Each row's `2 * beam_size` best continuations are enough for all groups: the earlier groups can spoil at most
    `beam_size` less one group's beams of them, and twice a group's beams are wanted.
    """

    needs_scores = True
    takes_graph_candidates = True

    def __init__(self, beam_size: int, num_groups: int, limits: SearchLimits) -> None:
        self.beam_size = beam_size
        self.num_candidates = 2 * beam_size
        self._end_token = limits.end_token
        self._group_size = beam_size // num_groups
        self._groups = [BeamSearch(self._group_size, limits) for _ in range(num_groups)]
        self._params: list[SentenceParams] = []
        self._has_finished = np.zeros((num_groups, limits.max_requests), np.bool_)

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Take one more request."""
        self._has_finished[:, len(self._params)] = False
        self._params.append(params)
        for group in self._groups:
            group.add(params, bonus)

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """One step of every group, in order."""
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
            # A group that has its hypotheses waits for the others, and nothing can be added to them.
            group.let_rest(finished)
        return Choice(chosen, parents, np.logical_and.reduce(self._has_finished[:, :num]))

    def prefixes(self, place: int) -> NDArray[np.int32]:
        """The tokens of all groups' beams, [beam_size, length]."""
        return np.concatenate([group.prefixes(place) for group in self._groups])

    def final_tokens(self, place: int) -> NDArray[np.int32]:
        """None before the end: groups are there to disagree."""
        return np.empty(0, np.int32)

    def hypotheses(self, place: int) -> list[Hypothesis]:
        """The answers of all groups, the best first; two groups may have the same one."""
        found = [hypothesis for group in self._groups for hypothesis in group.all_hypotheses(place)]
        found.sort(key=lambda hypothesis: -hypothesis.score)
        return found[: self._params[place].num_hypotheses]

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp], num_left: int) -> None:
        """Drop requests: those at `movers` take the places `holes`."""
        for group in self._groups:
            group.remove(holes, movers, num_left)
        self._has_finished[:, holes] = self._has_finished[:, movers]
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._params[hole] = self._params[mover]
        del self._params[num_left:]
