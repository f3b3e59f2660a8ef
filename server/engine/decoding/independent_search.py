"""Independent answers to one request, each in a row of its own: samples, or what follows several first tokens."""

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.loop_detection import LoopDetector
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, end_hypothesis
from server.interface.request import Hypothesis, SentenceParams


class IndependentSearch:
    """`beam_size` answers a request. The one candidate of each row is the token that its guide has drawn or chosen.

    An answer that has ended keeps its row, and what comes there is ignored, until all answers of its request have.
    """

    num_candidates = 1
    takes_graph_candidates = False
    needs_scores = True

    def __init__(self, num_answers: int, limits: SearchLimits) -> None:
        self.beam_size = num_answers
        self._limits = limits
        self._num_requests = 0
        capacity = limits.max_requests // num_answers
        per_answer = (capacity, num_answers)
        self._tokens = np.zeros((*per_answer, limits.max_new_tokens), np.int32)
        self._log_probs = np.zeros(per_answer, np.float64)
        self._num_tokens = np.zeros(per_answer, np.int32)
        self._has_ended = np.zeros(per_answer, np.bool_)
        self._has_looped = np.zeros(per_answer, np.bool_)
        self._steps = np.zeros(capacity, np.int32)
        self._params: list[SentenceParams] = []
        self._guard = LoopDetector(capacity)
        self._parents = np.broadcast_to(np.arange(num_answers), per_answer)

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Take one more request."""
        place = self._num_requests
        self._num_requests += 1
        self._params.append(params)
        self._guard.add(place, params)
        for array in (self._log_probs, self._num_tokens, self._has_ended, self._has_looped, self._steps):
            array[place] = 0

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Append each answer's next token."""
        num = self._num_requests
        drawn, gained = tokens[:num, :, 0].astype(np.int32), log_probs[:num, :, 0]
        limits = np.array([params.max_new_tokens for params in self._params])
        at_limit = (self._steps[:num] + 1 >= limits)[:, None]
        if self._limits.forced_end:
            drawn = np.where(at_limit, self._limits.end_token, drawn)
            gained = np.where(at_limit, np.float32(0.0), gained)
        runs = ~self._has_ended[:num]
        places = np.arange(num)[:, None], np.arange(self.beam_size), self._steps[:num, None]
        self._tokens[places] = drawn
        self._steps[:num] += 1
        self._log_probs[:num] += np.where(runs, gained, 0.0)
        self._num_tokens[:num] += runs
        looping = self._guard.looping(self._tokens[:num], self._steps[:num])
        if looping is not None:
            self._has_looped[:num] |= looping & runs
        self._has_ended[:num] |= (drawn == self._limits.end_token) | at_limit | self._has_looped[:num]
        return Choice(drawn, self._parents[:num], np.logical_and.reduce(self._has_ended[:num], axis=1))

    def prefixes(self, place: int) -> NDArray[np.int32]:
        """What the answers have so far, [beam_size, length]."""
        return self._tokens[place, :, : self._steps[place]]

    def final_tokens(self, place: int) -> NDArray[np.int32]:
        """All tokens of a single sample; none of several before the end, when the best is known."""
        if self.beam_size > 1:
            return np.empty(0, np.int32)
        return self._tokens[place, 0, : self._num_tokens[place, 0]]

    def hypotheses(self, place: int) -> list[Hypothesis]:
        """Samples with the best first, among which may be equals; alternatives in the order of their first tokens."""
        answers = [self._answer(place, row) for row in range(self.beam_size)]
        if self._params[place].options.return_alternatives:
            return answers
        return sorted(answers, key=lambda hypothesis: -hypothesis.score)

    def _answer(self, place: int, row: int) -> Hypothesis:
        params = self._params[place]
        return end_hypothesis(
            self._tokens[place, row, : self._num_tokens[place, row]].tolist(),
            float(self._log_probs[place, row]),
            params.options.length_penalty,
            params.max_new_tokens,
            self._limits,
            has_looped=bool(self._has_looped[place, row]),
        )

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp], num_left: int) -> None:
        """Drop requests: those at `movers` take the places `holes`."""
        for array in (
            self._tokens,
            self._log_probs,
            self._num_tokens,
            self._has_ended,
            self._has_looped,
            self._steps,
        ):
            array[holes] = array[movers]
        self._guard.remove(holes, movers)
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._params[hole] = self._params[mover]
        del self._params[num_left:]
        self._num_requests = num_left
