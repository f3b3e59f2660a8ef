"""How much of the required phrases a sequence of tokens has: one small automaton a phrase (Knuth, Morris, Pratt 1977).

A state is a number for each phrase: how many of its tokens stand at the end of the sequence, and all of them once the
phrase has been there. Phrases may overlap.
"""

from collections.abc import Sequence

from server.interface.request import Tokens

PhraseState = tuple[int, ...]


class RequiredPhrases:
    """Phrases of at least one token each."""

    def __init__(self, phrases: Sequence[Tokens]) -> None:
        self._phrases = tuple(dict.fromkeys(phrases))
        self._fallbacks = [_fallbacks(phrase) for phrase in self._phrases]
        self.start: PhraseState = (0,) * len(self._phrases)
        self.num_tokens = sum(map(len, self._phrases))

    def advance(self, state: PhraseState, token: int) -> PhraseState:
        """The state after one more token."""
        return tuple(
            self._matched(number, matched, token) if matched < len(phrase) else matched
            for number, (phrase, matched) in enumerate(zip(self._phrases, state, strict=True))
        )

    def num_met(self, state: PhraseState) -> int:
        """Tokens of complete phrases, and of that which is furthest among the others."""
        lengths = [len(phrase) for phrase in self._phrases]
        complete = sum(length for length, matched in zip(lengths, state, strict=True) if matched == length)
        begun = [matched for length, matched in zip(lengths, state, strict=True) if matched < length]
        return complete + max(begun, default=0)

    def is_met(self, state: PhraseState) -> bool:
        """Whether every phrase has been there."""
        return all(matched == len(phrase) for phrase, matched in zip(self._phrases, state, strict=True))

    def wanted(self, state: PhraseState) -> set[int]:
        """The tokens that would bring some phrase forward."""
        return {phrase[matched] for phrase, matched in zip(self._phrases, state, strict=True) if matched < len(phrase)}

    def _matched(self, number: int, matched: int, token: int) -> int:
        phrase, fallbacks = self._phrases[number], self._fallbacks[number]
        while matched and phrase[matched] != token:
            matched = fallbacks[matched - 1]
        return matched + (phrase[matched] == token)


def _fallbacks(phrase: Tokens) -> list[int]:
    """For each place the length of the longest beginning of the phrase that ends there, itself excepted."""
    found = [0]
    for token in phrase[1:]:
        length = found[-1]
        while length and phrase[length] != token:
            length = found[length - 1]
        found.append(length + (phrase[length] == token))
    return found
