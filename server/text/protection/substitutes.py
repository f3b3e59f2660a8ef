"""Words that stand in a sentence for what the model must not touch, and are found again in its translation.

A name that a model has often seen comes through where `%1$s` or a file name would be mangled. Nothing is believed: a
translation counts only if every stand-in came back exactly once.
"""

from collections.abc import Sequence

import regex

# In the order of how reliably the default model copies them; see docs/decisions/text.md for numbers.
_NAMES = ("Tom", "Maria", "Boston", "Paris", "John", "Mary", "Anna", "Peter", "Berlin", "London")

MAX_STAND_INS = len(_NAMES) // 2  # of a sentence; one with more is translated between them
NUM_ROUNDS = 2  # other names the second time


def stand_ins(count: int, sentence: str, attempt: int) -> list[str] | None:
    """So many different names that the sentence does not have; None where there are not enough."""
    names = [name for name in _NAMES if name.lower() not in sentence.lower()]
    start = attempt % max(len(names), 1)
    chosen = (names[start:] + names[:start])[:count]
    return chosen if len(chosen) == count <= MAX_STAND_INS else None


def places(translation: str, names: Sequence[str]) -> list[tuple[int, int]] | None:
    """Where each stand-in came back; None unless all did exactly once."""
    found = []
    for name in names:
        matches = [match.span() for match in regex.finditer(rf"(?<!\w){name}(?!\w)", translation)]
        if len(matches) != 1 or len(regex.findall(name, translation)) != 1:
            return None
        found.append(matches[0])
    return found
