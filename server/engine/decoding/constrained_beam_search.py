"""Beam search for answers that must have given phrases, by dynamic beam allocation (Post and Vilar 2018,
arXiv:1804.06609).

Every step of a request:

1. Candidates are the best continuations of all beams, the best one of each beam, and every continuation that brings a
   phrase forward. The end is a candidate only where all phrases are there.
2. Candidates fall into banks by how many tokens of phrases they have. The beams are shared out evenly among the banks,
   the rest going to the fullest; what a bank cannot use goes to the next lower one, and then to whoever can. So beams
   that have met much live beside more likely ones that have not.
3. Ends, hypotheses and finishing are those of server/engine/decoding/beam_search.py, ends being ranked in the last
   bank. At the token limit the hypotheses that have met most come first, complete or not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.loop_detection import LoopDetector
from server.engine.decoding.phrase_matching import PhraseState, RequiredPhrases
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, end_hypothesis
from server.interface.decoding_options import MAX_REQUIRED_TOKENS
from server.interface.request import Hypothesis, SentenceParams, num_hypotheses_held


class ConstrainedBeamSearch:
    """`beam_size` rows a request. Few requests are of this kind: each is a small object, and stepped on its own."""

    needs_scores = True
    takes_graph_candidates = False

    def __init__(self, beam_size: int, limits: SearchLimits) -> None:
        self.beam_size = beam_size
        self.num_candidates = 2 * beam_size + MAX_REQUIRED_TOKENS
        self._limits = limits
        self._requests: list[_Constrained] = []

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Take one more request. Its beams are all alike until the first step, so only the first one counts."""
        self._requests.append(_Constrained(params, bonus, self._limits))

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """One step of every request."""
        num = len(self._requests)
        chosen, parents = np.zeros((num, self.beam_size), np.int32), np.zeros((num, self.beam_size), np.intp)
        finished = np.zeros(num, np.bool_)
        for place, request in enumerate(self._requests):
            finished[place] = request.step(tokens[place], log_probs[place])
            if not finished[place]:
                beams = self._all_rows(request)
                chosen[place] = [beam.tokens[-1] for beam in beams]
                parents[place] = [beam.parent for beam in beams]
        return Choice(chosen, parents, finished)

    def prefixes(self, place: int) -> NDArray[np.int32]:
        """The tokens of the running beams, [beam_size, length]."""
        rows = [beam.tokens for beam in self._all_rows(self._requests[place])]
        return np.array(rows, np.int32).reshape(self.beam_size, -1)

    def _all_rows(self, request: "_Constrained") -> "list[_Beam]":
        """What each row holds: rows without a beam of their own repeat the first one."""
        return request.beams + request.beams[:1] * (self.beam_size - len(request.beams))

    def final_tokens(self, place: int) -> NDArray[np.int32]:
        """None before the end: a hypothesis with fewer of the phrases may still give way to one with more."""
        return np.empty(0, np.int32)

    def hypotheses(self, place: int) -> list[Hypothesis]:
        """The answers of a finished request, best first."""
        request = self._requests[place]
        return [hypothesis for _, hypothesis in request.ended][: request.params.num_hypotheses]

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp], num_left: int) -> None:
        """Drop requests: those at `movers` take the places `holes`."""
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._requests[hole] = self._requests[mover]
        del self._requests[num_left:]


@dataclass(frozen=True, slots=True)
class _Beam:
    """A running hypothesis, or a candidate for one, and which beam it continues."""

    log_probability: np.float32
    tokens: list[int]
    state: PhraseState
    parent: int = 0


class _Constrained:
    """One request: its running beams, and what has ended, best first, with how many tokens of phrases it has."""

    def __init__(self, params: SentenceParams, bonus: EndBonus | None, limits: SearchLimits) -> None:
        self.params = params
        self.ended: list[tuple[int, Hypothesis]] = []
        self._bonus = bonus
        self._limits = limits
        self._phrases = RequiredPhrases(params.required_phrases)
        self._num_held = num_hypotheses_held(params.options.patience, params.beam_size)
        self._guard = LoopDetector(1)
        self._guard.add(0, params)
        state = self._phrases.start
        for token in params.target_prefix:
            state = self._phrases.advance(state, token)
        self.beams = [_Beam(np.float32(0.0), [], state)]

    def step(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> bool:
        """Choose among the candidates [beam_size, num_candidates] of each beam; whether the request is finished."""
        length = len(self.beams[0].tokens) + 1
        at_limit = length >= self.params.max_new_tokens
        if at_limit and self._limits.forced_end:
            candidates = [self._continue(place, self._limits.end_token, np.float32(0.0)) for place in self._places]
        else:
            candidates = self._candidates(tokens, log_probs)
        if at_limit or not candidates:
            # Where nothing can follow, what is there is all there can be.
            self._end_all(candidates or self.beams)
            return True
        candidates.sort(key=lambda beam: -beam.log_probability)
        complete = [beam for beam in candidates if self._phrases.is_met(beam.state)][: self.params.beam_size]
        for beam in complete:
            if beam.tokens[-1] == self._limits.end_token:
                self._end(beam)
        running = self._allocate([beam for beam in candidates if beam.tokens[-1] != self._limits.end_token])
        running = self._without_loops(running)
        self._keep_best()
        if not running:
            if not self.ended:
                self._end_all(self.beams)
            return True
        self.beams = running
        if len(self.ended) < self._num_held:
            return False
        best_possible = (
            max(beam.log_probability for beam in running) / np.float32(length) ** self.params.options.length_penalty
        )
        return self.params.options.early_stopping or bool(best_possible <= self.ended[-1][1].score)

    @property
    def _places(self) -> range:
        return range(len(self.beams))

    def _continue(self, place: int, token: int, gained: np.float32) -> _Beam:
        beam = self.beams[place]
        # The end brings no phrase forward, and must not break one off either.
        state = beam.state if token == self._limits.end_token else self._phrases.advance(beam.state, token)
        return _Beam(beam.log_probability + gained, [*beam.tokens, token], state, place)

    def _candidates(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> list[_Beam]:
        """Step 1."""
        num_beams, num_candidates = len(self.beams), tokens.shape[1]
        sums = log_probs[:num_beams] + np.array([beam.log_probability for beam in self.beams])[:, None]
        best = np.argsort(-sums, axis=None, kind="stable")[: 2 * self.params.beam_size]
        places = set(best.tolist()) | {place * num_candidates + int(row.argmax()) for place, row in enumerate(sums)}
        for place, beam in enumerate(self.beams):
            brings_forward = np.isin(tokens[place], list(self._phrases.wanted(beam.state)))
            places.update((place * num_candidates + np.flatnonzero(brings_forward)).tolist())
        candidates = []
        for place, column in (divmod(flat, num_candidates) for flat in sorted(places)):
            token, gained = int(tokens[place, column]), log_probs[place, column]
            is_early_end = token == self._limits.end_token and not self._phrases.is_met(self.beams[place].state)
            if gained > -np.inf and not is_early_end:
                candidates.append(self._continue(place, token, gained))
        return candidates

    def _allocate(self, candidates: list[_Beam]) -> list[_Beam]:
        """Step 2. `candidates` are sorted, and so are the beams that run on, of whatever bank."""
        banks: list[list[_Beam]] = [[] for _ in range(self._phrases.num_tokens + 1)]
        for beam in candidates:
            banks[self._phrases.num_met(beam.state)].append(beam)
        sizes = bank_sizes(self.params.beam_size, [len(bank) for bank in banks])
        kept = [beam for bank, size in zip(banks, sizes, strict=True) for beam in bank[:size]]
        return sorted(kept, key=lambda beam: -beam.log_probability)

    def _without_loops(self, running: list[_Beam]) -> list[_Beam]:
        """The beams without those that go round in circles; of these, the complete ones are hypotheses."""
        if not running:
            return running
        tokens = np.array([beam.tokens for beam in running], np.int32)
        looping = self._guard.looping(tokens[None], np.array([tokens.shape[1]], np.int32))
        if looping is None:
            return running
        for beam, loops in zip(running, looping[0].tolist(), strict=True):
            if loops and self._phrases.is_met(beam.state):
                self._end(beam, has_looped=True)
        return [beam for beam, loops in zip(running, looping[0].tolist(), strict=True) if not loops]

    def _end_all(self, beams: list[_Beam]) -> None:
        """Make hypotheses of the best of these beams, whether complete or not."""
        best = sorted(beams, key=lambda beam: (-self._phrases.num_met(beam.state), -beam.log_probability))
        for beam in best[: self.params.beam_size]:
            self._end(beam)
        self._keep_best()

    def _end(self, beam: _Beam, has_looped: bool = False) -> None:
        hypothesis = end_hypothesis(
            beam.tokens,
            beam.log_probability,
            self.params.options.length_penalty,
            self.params.max_new_tokens,
            self._limits,
            has_looped=has_looped,
            bonus=self._bonus,
        )
        self.ended.append((self._phrases.num_met(beam.state), hypothesis))

    def _keep_best(self) -> None:
        self.ended.sort(key=lambda each: (-each[0], -each[1].score))
        del self.ended[self._num_held :]


def bank_sizes(beam_size: int, num_candidates: list[int]) -> list[int]:
    """How many beams each bank gets, at most as many as it has candidates; see step 2."""
    num_banks = len(num_candidates)
    wanted = [beam_size // num_banks] * num_banks
    wanted[-1] += beam_size % num_banks
    sizes = [0] * num_banks
    left = 0
    for bank in reversed(range(num_banks)):
        left += wanted[bank]
        sizes[bank] = min(left, num_candidates[bank])
        left -= sizes[bank]
    for bank in reversed(range(num_banks)):
        more = min(left, num_candidates[bank] - sizes[bank])
        sizes[bank] += more
        left -= more
    return sizes
