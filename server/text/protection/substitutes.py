"""Substitute words for protected spans, and their detection in translations.

Models copy names that they have often seen, and mangle `%1$s` or a file name. A translation counts only if it has every
substitute exactly once.
"""

from collections.abc import Sequence

import regex

# In the order of how reliably the default model copies them; docs/decisions/text.md has the numbers.
_NAMES = ("Tom", "Maria", "Boston", "Paris", "John", "Mary", "Anna", "Peter", "Berlin", "London")

MAX_SUBSTITUTES = len(_NAMES) // 2  # in one sentence; one with more is translated piecewise
NUM_ROUNDS = 2  # each round begins with another name


def choose_substitutes(count: int, sentence: str, round_: int) -> list[str] | None:
    """Return different names that the sentence does not contain; None if there are not enough."""
    names = [name for name in _NAMES if name.lower() not in sentence.lower()]
    start = round_ % max(len(names), 1)
    chosen = (names[start:] + names[:start])[:count]
    return chosen if len(chosen) == count <= MAX_SUBSTITUTES else None


def find_substitutes(translation: str, substitutes: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return the span of each substitute in a translation; None unless it has each exactly once."""
    found = []
    for name in substitutes:
        matches = [match.span() for match in regex.finditer(rf"(?<!\w){name}(?!\w)", translation)]
        if len(matches) != 1 or len(regex.findall(name, translation)) != 1:
            return None
        found.append(matches[0])
    return found
