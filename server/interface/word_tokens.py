"""Tokens as parts of words: what a search has to know about them."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class WordTokens:
    """Target tokens that continue a word, and those of them that may be the ending of an inflected form.

    Both are empty if the vocabulary does not mark where words begin.
    """

    continuations: frozenset[int] = field(default=frozenset(), repr=False)
    endings: frozenset[int] = field(default=frozenset(), repr=False)


NO_WORDS = WordTokens()
