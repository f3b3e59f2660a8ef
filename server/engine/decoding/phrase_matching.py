"""Matching of required phrases in a sequence of tokens: one automaton a phrase (Knuth, Morris, Pratt 1977).

A phrase counts as a word or words: the token behind it must not continue its last word. Several phrases may be
alternatives of one another, of which any one is enough. Phrases may overlap.

A state has one number for each phrase: how many of its tokens end the sequence, or one more than all of them once a
token behind the phrase has confirmed it. At the end of a sequence, all of its tokens are enough.
"""

from collections.abc import Collection, Sequence
from itertools import chain

from server.interface.request import Tokens

PhraseState = tuple[int, ...]

_CONTINUES, _BEGINS = -1, -2  # kinds of tokens outside the phrases


class RequiredPhrases:
    """Required phrases of one request, of at least one token each; every group has alternatives of one another.

    `continuations` are tokens that continue a word.
    """

    def __init__(self, groups: Sequence[Sequence[Tokens]], continuations: Collection[int] = ()) -> None:
        distinct = dict.fromkeys(tuple(dict.fromkeys(group)) for group in groups)
        self._groups: list[tuple[int, ...]] = []  # indices of the phrases of each group
        self._phrases: list[Tokens] = []
        for group in distinct:
            self._groups.append(tuple(range(len(self._phrases), len(self._phrases) + len(group))))
            self._phrases += group
        self._continuations = continuations
        self._fallbacks = [_fallbacks(phrase) for phrase in self._phrases]
        self._sizes = [max(len(self._phrases[index]) for index in group) for group in self._groups]
        self._num_met: dict[PhraseState, int] = {}
        self._wanted: dict[PhraseState, set[int]] = {}
        self._own_tokens = set(chain.from_iterable(self._phrases))
        self._next: dict[tuple[PhraseState, int], PhraseState] = {}
        self.start: PhraseState = (0,) * len(self._phrases)
        self.num_tokens = sum(self._sizes)

    def advance(self, state: PhraseState, token: int) -> PhraseState:
        """Return the state after one more token."""
        continues = token in self._continuations
        # All tokens outside the phrases, nearly all candidates, lead to one of two states.
        kind = token if token in self._own_tokens else _CONTINUES if continues else _BEGINS
        if (following := self._next.get((state, kind))) is None:
            matched = [self._matched(index, matched, token, continues) for index, matched in enumerate(state)]
            following = self._next[state, kind] = tuple(matched)
        return following

    def num_met(self, state: PhraseState) -> int:
        """Return the number of tokens of complete groups plus those of the longest begun phrase."""
        if (num_met := self._num_met.get(state)) is None:
            num_met = self._num_met[state] = self._counted(state)
        return num_met

    def _counted(self, state: PhraseState) -> int:
        complete, begun = 0, 0
        for group, size in zip(self._groups, self._sizes, strict=True):
            if self._is_complete(group, state):
                complete += size
            else:
                begun = max(begun, *(state[index] for index in group))
        return complete + begun

    def is_met(self, state: PhraseState) -> bool:
        """Return whether a phrase of every group has occurred, if the sequence ends or the next token begins a word."""
        return self.num_met(state) == self.num_tokens

    def is_unconfirmed(self, state: PhraseState) -> bool:
        """Return whether the next token decides whether a phrase has occurred."""
        return any(matched == len(phrase) for phrase, matched in zip(self._phrases, state, strict=True))

    def wanted(self, state: PhraseState) -> set[int]:
        """Return the tokens that would advance a phrase of a group without a complete one."""
        if (wanted := self._wanted.get(state)) is None:
            wanted = self._wanted[state] = self._advancing(state)
        return wanted

    def _advancing(self, state: PhraseState) -> set[int]:
        incomplete = (group for group in self._groups if not any(self._is_confirmed(index, state) for index in group))
        return {
            self._phrases[index][state[index]]
            for index in chain.from_iterable(incomplete)
            if state[index] < len(self._phrases[index])
        }

    def continues_word(self, token: int) -> bool:
        """Return whether a token continues the word before it."""
        return token in self._continuations

    def _is_confirmed(self, index: int, state: PhraseState) -> bool:
        return state[index] > len(self._phrases[index])

    def _is_complete(self, group: tuple[int, ...], state: PhraseState) -> bool:
        return any(state[index] >= len(self._phrases[index]) for index in group)

    def _matched(self, index: int, matched: int, token: int, continues: bool) -> int:
        phrase, fallbacks = self._phrases[index], self._fallbacks[index]
        if matched > len(phrase) or (matched == len(phrase) and not continues):
            return len(phrase) + 1
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
