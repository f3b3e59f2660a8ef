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

from server.decoding.repetition import RepetitionGuard
from server.decoding.search import Choice, EndBonus, SearchLimits
from server.request import FinishReason, GenerationParams, Hypothesis, num_hypotheses_held

# Hugging Face's "minus infinity": the sum of a beam that does not exist yet. A sum below half of it belongs to no real
# hypothesis: it continues such a beam, or a token that the model or a constraint ruled out.
_NEVER = np.float32(-1e9)


@dataclass(slots=True)
class _Ended:
    """The hypotheses a request holds, best first."""

    params: GenerationParams
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
        self._tokens = np.zeros((capacity, beam_size, limits.max_new_tokens), np.int32)
        self._running = np.zeros((capacity, beam_size), np.float32)
        self._lengths = np.zeros(capacity, np.int32)
        self._max_lengths = np.zeros(capacity, np.int32)
        self._penalties = np.zeros(capacity, np.float32)
        self._early_stopping = np.zeros(capacity, np.bool_)
        self._guard = RepetitionGuard(capacity)
        self._places = np.arange(capacity)
        self._beams = np.arange(beam_size)
        self._worst_ended = np.zeros(capacity, np.float32)  # score of the worst held, -inf while there is room

    def add(self, params: GenerationParams, bonus: EndBonus | None = None) -> None:
        """Take one more request. Its beams are all alike until the first step, so only the first one counts."""
        place = self._num_requests
        self._num_requests += 1
        self._ended.append(_Ended(params, bonus, num_hypotheses_held(params.patience, self.beam_size), []))
        self._running[place] = _NEVER
        self._running[place, 0] = 0.0
        self._lengths[place] = 0
        self._max_lengths[place] = params.max_new_tokens
        self._penalties[place] = params.length_penalty
        self._early_stopping[place] = params.early_stopping
        self._worst_ended[place] = -np.inf
        self._guard.add(place, params)

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """One step of every request, see the top of this file."""
        num, beam_size = self._num_requests, self.beam_size
        lengths = self._lengths[:num]
        at_limit = lengths + 1 >= self._max_lengths[:num]
        if self._limits.forced_end and at_limit.any():
            tokens, log_probs = self._force_end(tokens, log_probs, at_limit)

        # 1. the best 2 * beam_size continuations [requests, 2 * beam_size]
        num_candidates = tokens.shape[2]
        # Their negatives, for sorting ascends. `take` looks into an array as if it were flat, which is several times as
        # fast as indexing with two arrays or np.take_along_axis.
        costs = np.subtract(-self._running[:num, :, None], log_probs).reshape(num, -1)
        best = costs.argsort(axis=1, kind="stable")[:, : 2 * beam_size]
        starts = self._places[:num, None]
        flat_best = best + starts * costs.shape[1]
        best_sums = -costs.take(flat_best)
        best_tokens = tokens.take(flat_best)
        best_parents = best // num_candidates
        ends = (best_tokens == self._limits.end_token) | at_limit[:, None]

        # 2. hypotheses that end now
        lengths += 1
        held = (ends & (best_sums > _NEVER / 2))[:, :beam_size]
        places, ranks = held.nonzero()
        if places.size:
            for place, rank in zip(places.tolist(), ranks.tolist(), strict=True):
                self._tokens[place, best_parents[place, rank], lengths[place] - 1] = best_tokens[place, rank]
                self._end(place, int(best_parents[place, rank]), best_sums[place, rank])
            for place in dict.fromkeys(places.tolist()):
                self._keep_best(place)

        # 3. the beams that run on; a stable sort brings those that do not end to the front, best first
        runs_on = ends.argsort(axis=1, kind="stable")[:, :beam_size] + starts * best.shape[1]
        parents = best_parents.take(runs_on)
        chosen = best_tokens.take(runs_on).astype(np.int32)
        self._running[:num] = best_sums.take(runs_on)
        self._continue(parents, chosen)
        best_running = self._running[:num, 0]
        looping = self._guard.looping(self._tokens[:num], lengths)
        if looping is not None:
            best_running = self._end_loops(looping & ~at_limit[:, None])

        # 4. finished?
        best_possible = best_running / lengths.astype(np.float32) ** self._penalties[:num]
        is_full = self._worst_ended[:num] > -np.inf
        cannot_improve = best_possible <= self._worst_ended[:num]
        nothing_runs = ~(best_running > _NEVER / 2)  # NaN does not run either
        finished = at_limit | nothing_runs | (is_full & (self._early_stopping[:num] | cannot_improve))
        return Choice(chosen, parents, finished)

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
        running = self._running[: self._num_requests]
        ends = looping & (running > _NEVER / 2)
        for place, beam in np.argwhere(ends).tolist():
            self._end(place, beam, running[place, beam], FinishReason.REPETITION)
        for place in np.flatnonzero(ends.any(axis=1)).tolist():
            self._keep_best(place)
        running[ends] = _NEVER
        best: NDArray[np.float32] = running.max(axis=1)
        return best

    def _end(self, place: int, beam: int, log_probability: np.float32, why: FinishReason | None = None) -> None:
        num_tokens = int(self._lengths[place])
        tokens = self._tokens[place, beam, :num_tokens].tolist()
        ended = tokens[-1] == self._limits.end_token
        at_limit = num_tokens >= self._max_lengths[place]
        stopped = ended and not (self._limits.forced_end and at_limit)
        score = float(log_probability / np.float32(num_tokens) ** self._penalties[place])
        answer = tokens[:-1] if ended else tokens
        if (bonus := self._ended[place].bonus) is not None:
            score += bonus(np.array(tokens, np.int32))
        reason = why or (FinishReason.STOP if stopped else FinishReason.LENGTH)
        self._ended[place].hypotheses.append(Hypothesis(answer, float(log_probability), score, reason))

    def _keep_best(self, place: int) -> None:
        held, num_held = self._ended[place].hypotheses, self._ended[place].num_held
        held.sort(key=lambda hypothesis: -hypothesis.score)
        del held[num_held:]
        if len(held) == num_held:
            self._worst_ended[place] = held[-1].score

    def _continue(self, parents: NDArray[np.intp], chosen: NDArray[np.int32]) -> None:
        """Give every beam the tokens of its parent and its own next one."""
        num = self._num_requests
        lengths = self._lengths[:num]
        longest = int(lengths.max(initial=1))
        moved = (parents != self._beams).any(axis=1).nonzero()[0]
        self._tokens[moved, :, :longest] = self._tokens[moved[:, None], parents[moved], :longest]
        self._tokens[self._places[:num, None], self._beams, lengths[:, None] - 1] = chosen

    def let_rest(self, places: NDArray[np.bool_]) -> None:
        """Add nothing more to these requests [requests]: from here on no beam of theirs counts."""
        self._running[: places.size][places] = _NEVER

    def prefixes(self, place: int) -> NDArray[np.int32]:
        """The tokens of the running beams, [beam_size, length]."""
        return self._tokens[place, :, : self._lengths[place]]

    def final_tokens(self, place: int) -> NDArray[np.int32]:
        """The prefix that the running beams and the best hypothesis held agree on: the answer is of one of them.

        Other hypotheses held never win, the best one being better already.
        """
        num_tokens = int(self._lengths[place])
        beams = self._tokens[place, self._running[place] > _NEVER / 2, :num_tokens]
        if held := self._ended[place].hypotheses:
            best = np.array(held[0].token_ids[:num_tokens], np.int32)
            beams = np.concatenate([beams[:, : best.size], best[None]])
        agreed = (beams == beams[:1]).all(axis=0)
        return beams[0, : agreed.size if agreed.all() else int(agreed.argmin())]

    def hypotheses(self, place: int) -> list[Hypothesis]:
        """The answers of a finished request, best first: as many as it asked for, fewer where no more are possible."""
        return self.all_hypotheses(place)[: self._ended[place].params.num_hypotheses]

    def all_hypotheses(self, place: int) -> list[Hypothesis]:
        """All that a request holds, best first."""
        return self._ended[place].hypotheses

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp], num_left: int) -> None:
        """Drop requests: those at `movers` take the places `holes`."""
        for array in (
            self._tokens,
            self._running,
            self._lengths,
            self._max_lengths,
            self._penalties,
            self._early_stopping,
            self._worst_ended,
        ):
            array[holes] = array[movers]
        self._guard.remove(holes, movers)
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._ended[hole] = self._ended[mover]
        del self._ended[num_left:]
        self._num_requests = num_left
