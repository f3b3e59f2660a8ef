"""Beam search with length normalisation, in the exact rules of Hugging Face `generate`.

Every step of a request with `beam_size` running beams:

1. All continuations of all running beams are ranked by summed log-probability; the best 2 * beam_size are kept, so that
   at least beam_size of them do not end.
2. Among the first beam_size of those, each that ends (end-of-sequence token, or the token limit) is a hypothesis with
   score = log-probability / num_tokens ** length_penalty, where num_tokens counts the end-of-sequence token, plus
   the coverage penalty. The best beam_size * patience hypotheses (rounded; Kasai et al. 2022,
   arXiv:2204.05424) are kept. Endings further down the ranking are dropped.
3. The best beam_size continuations that do not end run on. A loop, detected by its repetitions, becomes a hypothesis.
4. The request is finished when it holds beam_size * patience hypotheses and
   * `early_stopping=True`: at once;
   * `early_stopping=False`: as soon as the best running beam, scored as if it ended now and covered all of the source,
     is not better than the worst hypothesis held. No hypothesis is added after that;
   or when the token limit is reached, or no beam has a possible continuation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.searches import NEVER, RunningBeams
from server.engine.decoding.loop_detection import LoopDetector
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, common_prefix, end_hypothesis
from server.interface.request import Hypothesis, SentenceParams, num_hypotheses_held


@dataclass(slots=True)
class _Held:
    """Hypotheses that a request holds, best first."""

    params: SentenceParams
    bonus: EndBonus | None
    num_held: int
    hypotheses: list[Hypothesis]


class BeamSearch:
    """Beam search of many requests, with `beam_size` rows each."""

    needs_scores = True

    def __init__(self, beam_size: int, limits: SearchLimits) -> None:
        self.beam_size = beam_size
        self.num_candidates = self.num_graph_candidates = 2 * beam_size
        self._limits = limits
        self._num_requests = 0
        self._held: list[_Held] = []
        capacity = limits.max_requests
        self._beams = RunningBeams(capacity, beam_size, limits.max_new_tokens, limits.end_token)
        self._penalties = np.zeros(capacity, np.float32)
        self._early_stopping = np.zeros(capacity, np.bool_)
        self._loops = LoopDetector(capacity)
        self._worst_held = np.zeros(capacity, np.float32)  # score; -inf while fewer than num_held are held

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request. Its beams are equal until the first step, so only the first one counts."""
        index = self._num_requests
        self._num_requests += 1
        self._held.append(_Held(params, bonus, num_hypotheses_held(params.options.patience, self.beam_size), []))
        self._beams.sums[index] = NEVER
        self._beams.sums[index, 0] = 0.0
        self._beams.lengths[index] = 0
        self._beams.max_lengths[index] = params.max_new_tokens
        self._penalties[index] = params.options.length_penalty
        self._early_stopping[index] = params.options.early_stopping
        self._worst_held[index] = -np.inf
        self._loops.add(index, params)

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Run one step of every request, as described at the top of this file."""
        num, beams = self._num_requests, self._beams
        lengths = beams.lengths[:num]
        at_limit = lengths + 1 >= beams.max_lengths[:num]
        if self._limits.forced_end and at_limit.any():
            tokens, log_probs = self._force_end(tokens, log_probs, at_limit)
        step = beams.advance(tokens, log_probs)  # 1. to 3.
        for index, hypothesis, log_probability in step.ended:
            self._end(index, hypothesis, log_probability)
        for index in dict.fromkeys(index for index, _, _ in step.ended):
            self._keep_best(index)
        best_running = beams.sums[:num, 0]
        looping = self._loops.looping(beams.tokens[:num], lengths)
        if looping is not None:
            best_running = self._end_loops(looping & ~at_limit[:, None])

        # 4. finished?
        best_possible = best_running / lengths.astype(np.float32) ** self._penalties[:num]
        is_full = self._worst_held[:num] > -np.inf
        cannot_improve = best_possible <= self._worst_held[:num]
        nothing_runs = ~(best_running > NEVER / 2)  # true for NaN as well
        finished = at_limit | nothing_runs | (is_full & (self._early_stopping[:num] | cannot_improve))
        return Choice(step.tokens, step.parents, finished)

    def _force_end(
        self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32], at_limit: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Make the end-of-sequence token, at no cost, the only continuation of requests at their limit."""
        tokens, log_probs = tokens.copy(), log_probs.copy()
        log_probs[at_limit] = -np.inf
        log_probs[at_limit, :, 0] = 0.0
        tokens[at_limit, :, 0] = self._limits.end_token
        return tokens, log_probs

    def _end_loops(self, looping: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Turn looping beams [requests, beam_size] into hypotheses; return the best sum [requests] of the others."""
        running = self._beams.sums[: self._num_requests]
        ends = looping & (running > NEVER / 2)
        for index, beam in np.argwhere(ends).tolist():
            self._end(index, self.prefixes(index)[beam], running[index, beam], has_looped=True)
        for index in np.flatnonzero(ends.any(axis=1)).tolist():
            self._keep_best(index)
        running[ends] = NEVER
        # Only of requests with a loop: answers of others must not depend on it.
        best: NDArray[np.float32] = np.where(ends.any(axis=1), running.max(axis=1), running[:, 0])
        return best

    def _end(
        self, index: int, tokens: NDArray[np.int32], log_probability: np.float32, has_looped: bool = False
    ) -> None:
        held = self._held[index]
        params, bonus = held.params, held.bonus
        held.hypotheses.append(
            end_hypothesis(
                tokens.tolist(),
                log_probability,
                params.options.length_penalty,
                params.max_new_tokens,
                self._limits,
                has_looped=has_looped,
                bonus=bonus,
            )
        )

    def _keep_best(self, index: int) -> None:
        held, num_held = self._held[index].hypotheses, self._held[index].num_held
        held.sort(key=lambda hypothesis: -hypothesis.score)
        del held[num_held:]
        if len(held) == num_held:
            self._worst_held[index] = held[-1].score

    def stop(self, is_stopped: NDArray[np.bool_]) -> None:
        """Stop all beams of these requests [requests]; no hypothesis is added to them any more."""
        self._beams.sums[: is_stopped.size][is_stopped] = NEVER

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return the tokens of the running beams, [beam_size, length]."""
        return self._beams.tokens[index, :, : self._beams.lengths[index]]

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return the common prefix of the running beams and the best hypothesis held.

        The answer is one of them: the other hypotheses held are worse than the best one.
        """
        prefixes = self.prefixes(index)
        num_tokens = prefixes.shape[1]
        beams = prefixes[self._beams.sums[index] > NEVER / 2]
        if held := self._held[index].hypotheses:
            best = np.array(held[0].token_ids[:num_tokens], np.int32)
            beams = np.concatenate([beams[:, : best.size], best[None]])
        return common_prefix(beams)

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return the requested hypotheses of a finished request, best first; fewer if no more are valid."""
        return self.all_hypotheses(index)[: self._held[index].params.num_hypotheses]

    def all_hypotheses(self, index: int) -> list[Hypothesis]:
        """Return all hypotheses that a request holds, best first."""
        return self._held[index].hypotheses

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`."""
        self._beams.remove(holes, movers)
        for array in (self._penalties, self._early_stopping, self._worst_held):
            array[holes] = array[movers]
        self._loops.remove(holes, movers)
        for hole, mover in zip(holes, movers, strict=True):
            self._held[hole] = self._held[mover]
        del self._held[num_left:]
        self._num_requests = num_left
