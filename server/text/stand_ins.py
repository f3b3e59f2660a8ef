"""Words that stand in a sentence for what the model must not touch, and are found again in its translation.

A name that a model has often seen comes through where `%1$s` or a file name would be mangled. Nothing is believed: a
translation counts only if every stand-in came back exactly once. Numbers stand for themselves.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence

import regex

# In the order of how reliably the default model copies them; see DECISIONS.md for numbers.
_NAMES = ("Tom", "Maria", "Boston", "Paris", "John", "Mary", "Anna", "Peter", "Berlin", "London")

_SEPARATORS = {
    **dict.fromkeys(".,'\u00a0\u2009\u202f", r"[.,'’ \u00a0\u2009\u202f]"),
    **dict.fromkeys("-−", "[-−–]"),
    ":": "[.:]",
}

MAX_STAND_INS = len(_NAMES) // 2  # of a sentence; one with more is translated between them
NUM_ROUNDS = 2  # other names the second time


def stand_ins(count: int, sentence: str, attempt: int) -> list[str] | None:
    """So many different names that the sentence does not have; None where there are not enough."""
    names = [name for name in _NAMES if name.lower() not in sentence.lower()]
    start = attempt % max(len(names), 1)
    chosen = (names[start:] + names[:start])[:count]
    return chosen if len(chosen) == count <= MAX_STAND_INS else None


def _number(name: str) -> str:
    """The pattern of a number that is no part of a longer one, with separators as any language has them."""
    written = "".join(_SEPARATORS.get(character) or regex.escape(character) for character in _in_ascii_digits(name))
    return rf"(?<!\d)(?<!\d[.,:/-]){written}(?![.,:/-]?\d)"


def _in_ascii_digits(text: str) -> str:
    """The text with a digit of 0 to 9 for each of other scripts; as long as that."""
    return text if text.isascii() else "".join(str(unicodedata.decimal(each, each)) for each in text)


def places(translation: str, names: Sequence[str]) -> list[tuple[int, int]] | None:
    """Where each stand-in came back; None unless all did exactly once, and a number as often as it was told."""
    found: dict[str, list[tuple[int, int]]] = {}
    for name, count in Counter(names).items():
        pattern, anywhere = rf"(?<!\w){name}(?!\w)", name
        if name[-1].isdigit():
            pattern = anywhere = _number(name)
            translation = _in_ascii_digits(translation)
        found[name] = [match.span() for match in regex.finditer(pattern, translation)]
        if len(found[name]) != count or len(regex.findall(anywhere, translation)) != count:
            return None
    return [found[name].pop(0) for name in names]
