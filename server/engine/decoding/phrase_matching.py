"""Matching of required phrases in a sequence of tokens: one automaton a phrase (Knuth, Morris, Pratt 1977).

A state has one number for each phrase: how many of its tokens end the sequence, or all of them once the phrase has
occurred. Phrases may overlap.
"""

from collections.abc import Sequence

from server.interface.request import Tokens

PhraseState = tuple[int, ...]


class RequiredPhrases:
    """Required phrases of one request, of at least one token each."""

    def __init__(self, phrases: Sequence[Tokens]) -> None:
        self._phrases = tuple(dict.fromkeys(phrases))
        self._fallbacks = [_fallbacks(phrase) for phrase in self._phrases]
        self.start: PhraseState = (0,) * len(self._phrases)
        self.num_tokens = sum(map(len, self._phrases))

    def advance(self, state: PhraseState, token: int) -> PhraseState:
        """Return the state after one more token."""
        return tuple(
            self._matched(number, matched, token) if matched < len(phrase) else matched
            for number, (phrase, matched) in enumerate(zip(self._phrases, state, strict=True))
        )

    def num_met(self, state: PhraseState) -> int:
        """Return the number of tokens of complete phrases plus those of the longest begun phrase."""
        lengths = [len(phrase) for phrase in self._phrases]
        complete = sum(length for length, matched in zip(lengths, state, strict=True) if matched == length)
        begun = [matched for length, matched in zip(lengths, state, strict=True) if matched < length]
        return complete + max(begun, default=0)

    def is_met(self, state: PhraseState) -> bool:
        """Return whether every phrase has occurred."""
        return all(matched == len(phrase) for phrase, matched in zip(self._phrases, state, strict=True))

    def wanted(self, state: PhraseState) -> set[int]:
        """Return the tokens that would advance a phrase."""
        return {phrase[matched] for phrase, matched in zip(self._phrases, state, strict=True) if matched < len(phrase)}

    def _matched(self, number: int, matched: int, token: int) -> int:
        phrase, fallbacks = self._phrases[number], self._fallbacks[number]
        while matched and phrase[matched] != token:
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
