"""Beam search with length normalisation, in the exact rules of Hugging Face `generate`.

Every step of a request with `beam_size` running beams:

1. All continuations of all running beams are ranked by summed log-probability; the best 2 * beam_size are kept, so that
   at least beam_size of them do not end.
2. Among the first beam_size of those, each that ends (end-of-sequence token, or the token limit) is a hypothesis with
   score = log-probability / num_tokens ** length_penalty, where num_tokens counts the end-of-sequence token, plus
   what a coverage penalty makes of it. The best beam_size * patience hypotheses (rounded; Kasai et al. 2022,
   arXiv:2204.05424) are kept. Endings further down the ranking are dropped.
3. The best beam_size continuations that do not end run on. One that goes round in circles becomes a hypothesis instead.
4. The request is finished when it holds beam_size * patience hypotheses and
   * `early_stopping=True`: at once;
   * `early_stopping=False`: as soon as the best running beam, scored as if it ended now and covered all of the source,
     is not better than the worst hypothesis held. Once that was so, nothing more is added;
   or when the token limit is reached, or no beam has a possible continuation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.beam_search import NEVER, RunningBeams
from server.engine.decoding.loop_detection import LoopDetector
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, end_hypothesis
from server.interface.request import Hypothesis, SentenceParams, num_hypotheses_held


@dataclass(slots=True)
class _Ended:
    """The hypotheses a request holds, best first."""

    params: SentenceParams
    bonus: EndBonus | None
    num_held: int
    hypotheses: list[Hypothesis]


class BeamSearch:
    """`beam_size` rows a request."""

    needs_scores = True
    takes_graph_candidates = True

    def __init__(self, beam_size: int, limits: SearchLimits) -> None:
        self.beam_size = beam_size
        self.num_candidates = 2 * beam_size
        self._limits = limits
        self._num_requests = 0
        self._ended: list[_Ended] = []
        capacity = limits.max_requests
        self._beams = RunningBeams(capacity, beam_size, limits.max_new_tokens, limits.end_token)
        self._penalties = np.zeros(capacity, np.float32)
        self._early_stopping = np.zeros(capacity, np.bool_)
        self._guard = LoopDetector(capacity)
        self._worst_ended = np.zeros(capacity, np.float32)  # score of the worst held, -inf while there is room

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Take one more request. Its beams are all alike until the first step, so only the first one counts."""
        place = self._num_requests
        self._num_requests += 1
        self._ended.append(_Ended(params, bonus, num_hypotheses_held(params.options.patience, self.beam_size), []))
        self._beams.sums[place] = NEVER
        self._beams.sums[place, 0] = 0.0
        self._beams.lengths[place] = 0
        self._beams.max_lengths[place] = params.max_new_tokens
        self._penalties[place] = params.options.length_penalty
        self._early_stopping[place] = params.options.early_stopping
        self._worst_ended[place] = -np.inf
        self._guard.add(place, params)

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """One step of every request, see the top of this file."""
        num, beams = self._num_requests, self._beams
        lengths = beams.lengths[:num]
        at_limit = lengths + 1 >= beams.max_lengths[:num]
        if self._limits.forced_end and at_limit.any():
            tokens, log_probs = self._force_end(tokens, log_probs, at_limit)
        step = beams.advance(tokens, log_probs)  # 1. to 3.
        for place, hypothesis, log_probability in step.ended:
            self._end(place, hypothesis, log_probability)
        for place in dict.fromkeys(place for place, _, _ in step.ended):
            self._keep_best(place)
        best_running = beams.sums[:num, 0]
        looping = self._guard.looping(beams.tokens[:num], lengths)
        if looping is not None:
            best_running = self._end_loops(looping & ~at_limit[:, None])

        # 4. finished?
        best_possible = best_running / lengths.astype(np.float32) ** self._penalties[:num]
        is_full = self._worst_ended[:num] > -np.inf
        cannot_improve = best_possible <= self._worst_ended[:num]
        nothing_runs = ~(best_running > NEVER / 2)  # NaN does not run either
        finished = at_limit | nothing_runs | (is_full & (self._early_stopping[:num] | cannot_improve))
        return Choice(step.tokens, step.parents, finished)

    def _force_end(
        self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32], at_limit: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Leave the end-of-sequence token, at no cost, as the only continuation of requests at their limit."""
        tokens, log_probs = tokens.copy(), log_probs.copy()
        log_probs[at_limit] = -np.inf
        log_probs[at_limit, :, 0] = 0.0
        tokens[at_limit, :, 0] = self._limits.end_token
        return tokens, log_probs

    def _end_loops(self, looping: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Make hypotheses of running beams [requests, beam_size]; returns the best sum of what still runs."""
        running = self._beams.sums[: self._num_requests]
        ends = looping & (running > NEVER / 2)
        for place, beam in np.argwhere(ends).tolist():
            self._end(place, self.prefixes(place)[beam], running[place, beam], has_looped=True)
        for place in np.flatnonzero(ends.any(axis=1)).tolist():
            self._keep_best(place)
        running[ends] = NEVER
        best: NDArray[np.float32] = running.max(axis=1)
        return best

    def _end(
        self, place: int, tokens: NDArray[np.int32], log_probability: np.float32, has_looped: bool = False
    ) -> None:
        ended = self._ended[place]
        params, bonus = ended.params, ended.bonus
        ended.hypotheses.append(
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

    def _keep_best(self, place: int) -> None:
        held, num_held = self._ended[place].hypotheses, self._ended[place].num_held
        held.sort(key=lambda hypothesis: -hypothesis.score)
        del held[num_held:]
        if len(held) == num_held:
            self._worst_ended[place] = held[-1].score

    def let_rest(self, places: NDArray[np.bool_]) -> None:
        """Add nothing more to these requests [requests]: from here on no beam of theirs counts."""
        self._beams.sums[: places.size][places] = NEVER

    def prefixes(self, place: int) -> NDArray[np.int32]:
        """The tokens of the running beams, [beam_size, length]."""
        return self._beams.tokens[place, :, : self._beams.lengths[place]]

    def final_tokens(self, place: int) -> NDArray[np.int32]:
        """The prefix that the running beams and the best hypothesis held agree on: the answer is of one of them.

        Other hypotheses held never win, the best one being better already.
        """
        prefixes = self.prefixes(place)
        num_tokens = prefixes.shape[1]
        beams = prefixes[self._beams.sums[place] > NEVER / 2]
        if held := self._ended[place].hypotheses:
            best = np.array(held[0].token_ids[:num_tokens], np.int32)
            beams = np.concatenate([beams[:, : best.size], best[None]])
        agreed = (beams == beams[:1]).all(axis=0)
        final: NDArray[np.int32] = beams[0, : agreed.size if agreed.all() else int(agreed.argmin())]
        return final

    def hypotheses(self, place: int) -> list[Hypothesis]:
        """The answers of a finished request, best first: as many as it asked for, fewer where no more are possible."""
        return self.all_hypotheses(place)[: self._ended[place].params.num_hypotheses]

    def all_hypotheses(self, place: int) -> list[Hypothesis]:
        """All that a request holds, best first."""
        return self._ended[place].hypotheses

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp], num_left: int) -> None:
        """Drop requests: those at `movers` take the places `holes`."""
        self._beams.remove(holes, movers)
        for array in (self._penalties, self._early_stopping, self._worst_ended):
            array[holes] = array[movers]
        self._guard.remove(holes, movers)
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._ended[hole] = self._ended[mover]
        del self._ended[num_left:]
        self._num_requests = num_left
