"""Matching of required phrases in a sequence of tokens: one automaton a phrase (Knuth, Morris, Pratt 1977).

A phrase counts as a word or words: the token behind it must not continue its last word, unless it is the ending of an
inflected form and the phrase is a term. Several phrases may be alternatives of one another, of which any one is enough.
Phrases may overlap.

A state has one number for each phrase, `matched`: how many of its tokens end the sequence, or one more than all of them
once a token behind the phrase has confirmed it. At the end of a sequence, all of its tokens are enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from server.interface.request import Tokens
from server.interface.word_tokens import NO_WORDS, WordTokens

_ENDS, _CONTINUES, _BEGINS = -1, -2, -3  # kinds of tokens outside the phrases


@dataclass(frozen=True, slots=True, eq=False)
class PhraseState:
    """How much of the phrases a sequence has. Equal states of one request are one object.

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
