"""Beam search for hypotheses with required phrases, by dynamic beam allocation (Post and Vilar 2018, arXiv:1804.06609).

Every step of a request:

1. Candidates are the best continuations of all beams, the best one of each beam, every continuation that advances a
   phrase, and behind a phrase the best one that does not continue its last word. The end-of-sequence token is a
   candidate only after all phrases.
2. Candidates are divided into banks by their number of phrase tokens. The banks get equal numbers of beams, the last
   bank also the remainder; beams that a bank cannot use go to the next lower one, then to any other. So beams with many
   phrase tokens coexist with more likely ones with few.
3. A beam that goes on where the end-of-sequence token was the best continuation, and a phrase was missing, has
   overrun: its phrase stands behind a complete sentence. Every other beam of its bank comes before it, and every other
   hypothesis with as many phrase tokens. The search goes on while only such hypotheses have ended and other beams run.
4. Ends, hypotheses and finishing are those of server/engine/decoding/beam_search.py; ends are ranked within the last
   bank. At the token limit the hypotheses with most phrase tokens come first, complete or not.

Phrases are matched by one automaton each (Knuth, Morris, Pratt 1977). A phrase counts as a word or words: the token
behind it must not continue its last word, unless it is the ending of an inflected form and the phrase is a term.
Several phrases may be alternatives, any one of which is enough. Phrases may overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.loop_detection import LoopDetector
from server.engine.decoding.search import Choice, EndBonus, SearchLimits, end_hypothesis
from server.interface.decoding_options import MAX_REQUIRED_TOKENS
from server.interface.request import Hypothesis, SentenceParams, Tokens, num_hypotheses_held
from server.interface.word_tokens import NO_WORDS, WordTokens

_ENDS, _CONTINUES, _BEGINS = -1, -2, -3  # kinds of tokens outside the phrases


@dataclass(frozen=True, slots=True, eq=False)
class PhraseState:
    """How much of the phrases a sequence has. Equal states of one request are one object.

    `matched` has one number for each phrase: how many of its tokens end the sequence, or one more than all of them once
    a token behind the phrase has confirmed it. At the end of a sequence, all of its tokens are enough.

    `num_met` is the number of tokens of complete groups plus those of the longest begun phrase. `is_met` says that a
    phrase of every group has occurred, if the sequence ends or the next token begins a word; `is_unconfirmed`, that the
    next token decides whether one has. `wanted` are the tokens that would advance a phrase of a group without one.
    """

    matched: tuple[int, ...]
    num_met: int
    is_met: bool
    is_unconfirmed: bool
    wanted: frozenset[int]


class RequiredPhrases:
    """Required phrases of one request, of at least one token each, and terms, which are groups of alternatives.

    The last word of a term may be inflected.
    """

    def __init__(
        self, phrases: Sequence[Tokens], terms: Sequence[Sequence[Tokens]] = (), words: WordTokens = NO_WORDS
    ) -> None:
        groups: dict[tuple[Tokens, ...], bool] = {(phrase,): False for phrase in phrases}
        for term in terms:
            groups.setdefault(tuple(dict.fromkeys(term)), True)
        self._groups: list[tuple[int, ...]] = []  # indices of the phrases of each group
        self._phrases: list[Tokens] = []
        self._may_be_inflected: list[bool] = []
        for group, is_term in groups.items():
            self._groups.append(tuple(range(len(self._phrases), len(self._phrases) + len(group))))
            self._phrases += group
            self._may_be_inflected += [is_term] * len(group)
        self._words = words
        self._fallbacks = [_fallbacks(phrase) for phrase in self._phrases]
        self._sizes = [max(len(self._phrases[index]) for index in group) for group in self._groups]
        self._own_tokens = set(chain.from_iterable(self._phrases))
        self._states: dict[tuple[int, ...], PhraseState] = {}
        self._next: dict[tuple[PhraseState, int], PhraseState] = {}
        self.num_tokens = sum(self._sizes)
        self.num_different_tokens = len(self._own_tokens)
        self.start = self._state((0,) * len(self._phrases))

    def advance(self, state: PhraseState, token: int) -> PhraseState:
        """Return the state after one more token."""
        # All tokens outside the phrases, nearly all candidates, lead to one of three states.
        kind = token if token in self._own_tokens else self._kind(token)
        if (following := self._next.get((state, kind))) is None:
            # Nearly all phrases have not begun, and do not begin with the token.
            matched = tuple(
                [
                    self._matched(index, matched, token) if matched or phrase[0] == token else 0
                    for index, (matched, phrase) in enumerate(zip(state.matched, self._phrases, strict=True))
                ]
            )
            following = self._next[state, kind] = self._state(matched)
        return following

    def continues_word(self, token: int) -> bool:
        """Return whether a token continues the word before it."""
        return token in self._words.continuations

    def _kind(self, token: int) -> int:
        if token in self._words.endings:
            return _ENDS
        return _CONTINUES if token in self._words.continuations else _BEGINS

    def _state(self, matched: tuple[int, ...]) -> PhraseState:
        if (state := self._states.get(matched)) is None:
            num_met = self._num_met(matched)
            is_unconfirmed = any(num == len(phrase) for phrase, num in zip(self._phrases, matched, strict=True))
            state = PhraseState(matched, num_met, num_met == self.num_tokens, is_unconfirmed, self._wanted(matched))
            self._states[matched] = state
        return state

    def _num_met(self, matched: tuple[int, ...]) -> int:
        complete, begun = 0, 0
        for group, size in zip(self._groups, self._sizes, strict=True):
            if any(matched[index] >= len(self._phrases[index]) for index in group):
                complete += size
            else:
                begun = max(begun, *(matched[index] for index in group))
        return complete + begun

    def _wanted(self, matched: tuple[int, ...]) -> frozenset[int]:
        phrases = self._phrases
        incomplete = (group for group in self._groups if not any(matched[each] > len(phrases[each]) for each in group))
        return frozenset(
            phrases[index][matched[index]]
            for index in chain.from_iterable(incomplete)
            if matched[index] < len(phrases[index])
        )

    def _matched(self, index: int, matched: int, token: int) -> int:
        phrase, fallbacks = self._phrases[index], self._fallbacks[index]
        if matched > len(phrase):
            return matched
        if matched == len(phrase):
            if not self.continues_word(token):
                return len(phrase) + 1
            if self._may_be_inflected[index] and token in self._words.endings:
                return matched
        while matched and (matched == len(phrase) or phrase[matched] != token):
            matched = fallbacks[matched - 1]
        return matched + (phrase[matched] == token)


def _fallbacks(phrase: Tokens) -> list[int]:
    """Return, for each position, the length of the longest proper prefix of the phrase that ends there."""
    found = [0]
    for token in phrase[1:]:
        length = found[-1]
        while length and phrase[length] != token:
            length = found[length - 1]
        found.append(length + (phrase[length] == token))
    return found


class ConstrainedBeamSearch:
    """Constrained search of a few requests with `beam_size` rows each, one object a request."""

    needs_scores = True

    def __init__(self, beam_size: int, limits: SearchLimits) -> None:
        self.beam_size = beam_size
        self.num_candidates = 2 * beam_size + MAX_REQUIRED_TOKENS
        self.num_graph_candidates = 2 * beam_size
        self._limits = limits
        self._requests: list[_Constrained] = []

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request. Its beams are equal until the first step, so only the first one counts."""
        self._requests.append(_Constrained(params, bonus, self._limits))

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Run one step of every request."""
        num = len(self._requests)
        chosen, parents = np.zeros((num, self.beam_size), np.int32), np.zeros((num, self.beam_size), np.intp)
        finished = np.zeros(num, np.bool_)
        for index, request in enumerate(self._requests):
            its_tokens, its_log_probs, num_narrow = tokens[index], log_probs[index], self._num_narrow(request)
            if not np.count_nonzero(its_log_probs[:, num_narrow:] != -np.inf):  # no others were wanted
                its_tokens, its_log_probs = its_tokens[:, :num_narrow], its_log_probs[:, :num_narrow]
            finished[index] = request.step(its_tokens, its_log_probs)
            if not finished[index]:
                beams = self._all_rows(request)
                chosen[index] = [beam.tokens[-1] for beam in beams]
                parents[index] = [beam.parent for beam in beams]
        return Choice(chosen, parents, finished)

    def num_wanted(self, index: int, best: NDArray[np.int64]) -> int:
        """Return how many candidates a request needs, required tokens included.

        The `best` [beams, num_graph_candidates] of the graph are enough next to the required tokens, unless a beam
        behind a phrase finds none that begins a word: few tokens do, and the best one may be far down.
        """
        request = self._requests[index]
        for beam, tokens in zip(request.beams, best, strict=False):
            if beam.state.is_unconfirmed and all(map(request.phrases.continues_word, tokens.tolist())):
                return self.num_candidates
        return self._num_narrow(request)

    def _num_narrow(self, request: "_Constrained") -> int:
        return self.num_graph_candidates + request.phrases.num_different_tokens

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return the tokens of the running beams, [beam_size, length]."""
        rows = [beam.tokens for beam in self._all_rows(self._requests[index])]
        return np.array(rows, np.int32).reshape(self.beam_size, -1)

    def _all_rows(self, request: "_Constrained") -> "list[_Beam]":
        """Return the beam of each row; rows without one repeat the first beam."""
        return request.beams + request.beams[:1] * (self.beam_size - len(request.beams))

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return no tokens: a hypothesis with more phrase tokens may still replace any other."""
        return np.empty(0, np.int32)

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return the requested hypotheses of a finished request, best first."""
        request = self._requests[index]
        return [each.hypothesis for each in request.ended[: request.params.num_hypotheses]]

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`."""
        for hole, mover in zip(holes, movers, strict=True):
            self._requests[hole] = self._requests[mover]
        del self._requests[num_left:]


class _Beam(NamedTuple):
    """A running beam or a candidate for one: the last `token` and those `before` it, and the beam that it continues.

    Beams with equally many phrase tokens are ordered by their `rank`, which is smallest for the best one. The
    log-probability is a number of single precision.
    """

    rank: tuple[bool, float]
    before: list[int]
    token: int | None
    state: PhraseState
    parent: int = 0

    @property
    def log_probability(self) -> np.float32:
        """The sum of the tokens' log-probabilities."""
        return np.float32(-self.rank[1])

    @property
    def has_overrun(self) -> bool:
        """Whether it goes on behind the end of a sentence; see step 3."""
        return self.rank[0]

    @property
    def tokens(self) -> list[int]:
        """All its tokens."""
        return self.before if self.token is None else [*self.before, self.token]


@dataclass(frozen=True, slots=True)
class _Ended:
    """A hypothesis, the number of its phrase tokens, and whether its beam has overrun."""

    num_met: int
    has_overrun: bool
    hypothesis: Hypothesis

    @property
    def rank(self) -> tuple[int, bool, float]:
        """The order of hypotheses; the smallest comes first."""
        return -self.num_met, self.has_overrun, -self.hypothesis.score


class _Constrained:
    """Search of one request: its running beams and its hypotheses, best first."""

    def __init__(self, params: SentenceParams, bonus: EndBonus | None, limits: SearchLimits) -> None:
        self.params = params
        self.ended: list[_Ended] = []
        self._bonus = bonus
        self._limits = limits
        self.phrases = RequiredPhrases(params.required_phrases, params.required_terms, limits.words)
        self._num_held = num_hypotheses_held(params.options.patience, params.beam_size)
        self._loops = LoopDetector(1)
        self._loops.add(0, params)
        state = self.phrases.start
        for token in params.target_prefix:
            state = self.phrases.advance(state, token)
        self.beams = [_Beam((False, 0.0), [], None, state)]

    def step(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> bool:
        """Choose among the candidates [beam_size, num_candidates]; return whether the request is finished."""
        before = [beam.tokens for beam in self.beams]
        length = len(before[0]) + 1
        at_limit = length >= self.params.max_new_tokens
        if at_limit and self._limits.forced_end:
            candidates = [
                _Beam(beam.rank, its_tokens, self._limits.end_token, beam.state, index)
                for index, (beam, its_tokens) in enumerate(zip(self.beams, before, strict=True))
            ]
        else:
            candidates = self._candidates(before, tokens, log_probs)
        if at_limit or not candidates:
            # Without a possible continuation, the beams themselves are the hypotheses.
            self._end_all(candidates or self.beams)
            return True
        candidates.sort(key=attrgetter("rank"))
        complete = [beam for beam in candidates if beam.state.is_met][: self.params.beam_size]
        for beam in complete:
            if beam.token == self._limits.end_token:
                self._end(beam)
        running = self._allocate([beam for beam in candidates if beam.token != self._limits.end_token])
        running = self._without_loops(running)
        self._keep_best()
        if not running:
            if not self.ended:
                self._end_all(self.beams)
            return True
        self.beams = running
        return self._is_finished(length)

    def _is_finished(self, length: int) -> bool:
        """Return whether no running beam of this length can improve the hypotheses."""
        in_order = [beam for beam in self.beams if not beam.has_overrun]
        num_in_order = sum(not each.has_overrun for each in self.ended)
        if num_in_order >= self.params.num_hypotheses and not in_order:
            return True
        if len(self.ended) < self._num_held or (in_order and num_in_order < self.params.num_hypotheses):
            return False
        worst = self.ended[num_in_order - 1 if in_order else -1]
        best_possible = (
            max(beam.log_probability for beam in in_order or self.beams)
            / np.float32(length) ** self.params.options.length_penalty
        )
        return self.params.options.early_stopping or bool(best_possible <= worst.hypothesis.score)

    def _candidates(
        self, before: list[list[int]], tokens: NDArray[np.int64], log_probs: NDArray[np.float32]
    ) -> list[_Beam]:
        """Return the candidates of step 1; `before` are the tokens of the beams."""
        num_beams, num_candidates = len(self.beams), tokens.shape[1]
        sums = log_probs[:num_beams] + np.array([beam.log_probability for beam in self.beams])[:, None]
        best = np.argsort(-sums, axis=None, kind="stable")[: 2 * self.params.beam_size]
        chosen = set(best.tolist())
        best_columns, best_of_rows = sums.argmax(axis=1).tolist(), log_probs[:num_beams].argmax(axis=1).tolist()
        # Few numbers of each beam: lists are faster than a dozen calls of NumPy.
        all_tokens, all_sums = tokens[:num_beams].tolist(), sums.tolist()
        for index, (beam, best_column, row) in enumerate(zip(self.beams, best_columns, all_tokens, strict=True)):
            first = index * num_candidates
            chosen.add(first + best_column)
            chosen.update([first + column for column, token in enumerate(row) if token in beam.state.wanted])
            if beam.state.is_unconfirmed:
                columns = np.argsort(-log_probs[index], kind="stable").tolist()
                confirms = (each for each in columns if not self.phrases.continues_word(row[each]))
                chosen.update(first + column for column in islice(confirms, 1))
        candidates = []
        end_token = self._limits.end_token
        for index, column in (divmod(flat, num_candidates) for flat in sorted(chosen)):
            beam, token, log_probability = self.beams[index], all_tokens[index][column], all_sums[index][column]
            if log_probability == -np.inf:
                continue
            has_overrun, state = beam.has_overrun, beam.state
            if not state.is_met:
                if token == end_token:
                    continue
                has_overrun = has_overrun or all_tokens[index][best_of_rows[index]] == end_token
            if token != end_token:  # which advances no phrase, and must not reset one either
                state = self.phrases.advance(state, token)
            candidates.append(_Beam((has_overrun, -log_probability), before[index], token, state, index))
        return candidates

    def _allocate(self, candidates: list[_Beam]) -> list[_Beam]:
        """Return the running beams of step 2, sorted over all banks; `candidates` are sorted."""
        banks: list[list[_Beam]] = [[] for _ in range(self.phrases.num_tokens + 1)]
        for beam in candidates:
            banks[beam.state.num_met].append(beam)
        sizes = bank_sizes(self.params.beam_size, [len(bank) for bank in banks])
        kept = [beam for bank, size in zip(banks, sizes, strict=True) for beam in bank[:size]]
        return sorted(kept, key=attrgetter("rank"))

    def _without_loops(self, running: list[_Beam]) -> list[_Beam]:
        """Return the beams without loops. Looping beams with all phrases become hypotheses."""
        if not running:
            return running
        tokens = np.array([beam.tokens for beam in running], np.int32)
        looping = self._loops.looping(tokens[None], np.array([tokens.shape[1]], np.int32))
        if looping is None:
            return running
        for beam, loops in zip(running, looping[0].tolist(), strict=True):
            if loops and beam.state.is_met:
                self._end(beam, has_looped=True)
        return [beam for beam, loops in zip(running, looping[0].tolist(), strict=True) if not loops]

    def _end_all(self, beams: list[_Beam]) -> None:
        """Turn the best of these beams into hypotheses, complete or not."""
        best = sorted(beams, key=lambda beam: (-beam.state.num_met, *beam.rank))
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
        self.ended.append(_Ended(beam.state.num_met, beam.has_overrun, hypothesis))

    def _keep_best(self) -> None:
        self.ended.sort(key=attrgetter("rank"))
        del self.ended[self._num_held :]


def bank_sizes(beam_size: int, num_candidates: list[int]) -> list[int]:
    """Return the number of beams of each bank, at most its number of candidates.

    See step 2 at the top of this file.
    """
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
