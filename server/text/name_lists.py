"""Recognition of lists of names, which need no translation."""

import re
from collections.abc import Callable

_SEPARATOR = re.compile(r"\s*(?:[,;/•·|&]|\s[-–]\s)\s*")
_CONJUNCTIONS = frozenset(("and", "und", "et", "y", "e", "i", "en", "och", "og"))
_PARTICLES = frozenset(
    ("von", "van", "der", "den", "de", "la", "le", "du", "di", "da", "del", "dos", "das", "al", "bin", "zu")
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*\.?")
_INITIAL = re.compile(r"[^\W\d_]\.")
_MAX_WORDS = 4  # of a name
_MIN_NAMES = 2
_MAX_CHARACTERS = 2000
_COMMON = 14.0  # the cost of a word that a small vocabulary has as one token or two
_MARGIN = 2.0  # nats by which a name may cost more than the same word in lower case


class NameLists:
    """Recognises lists of names of two or more words each, such as "Anna Schmidt, Peter Miller". Thread-safe.

    `cost` is how unlikely a word is for the vocabulary, in nats; it is 0 for all if the vocabulary has no words.
    """

    def __init__(self, cost: Callable[[str], float]) -> None:
        self._cost = cost
        self._is_informed = cost("a") > 0

    def is_list(self, text: str) -> bool:
        """Return whether a sentence consists of names only."""
        if not self._is_informed or len(text) > _MAX_CHARACTERS or not text[:1].isupper():
            return False
        names = [words for part in _SEPARATOR.split(text.strip(" .")) for words in _divided(part.split())]
        return len(names) >= _MIN_NAMES and all(map(self._is_name, names))

    def _is_name(self, words: list[str]) -> bool:
        if not 2 <= len(words) <= _MAX_WORDS or words[0] in _PARTICLES or words[-1] in _PARTICLES:
            return False
        return all(word in _PARTICLES or self._is_part(word) for word in words)

    def _is_part(self, word: str) -> bool:
        if _INITIAL.fullmatch(word):
            return word[0].isupper()
        if not _WORD.fullmatch(word) or not word[0].isupper() or word.isupper():
            return False
        # The vocabulary has words of the language in lower case: "Terms Of Use, Privacy Policy" are no names.
        lower = self._cost(word.lower())
        return lower > _COMMON or self._cost(word) <= lower + _MARGIN


def _divided(words: list[str]) -> list[list[str]]:
    """Return the names between the conjunctions of a list's last part."""
    names: list[list[str]] = [[]]
    for word in words:
        if word in _CONJUNCTIONS:
            names.append([])
        else:
            names[-1].append(word)
    return [name for name in names if name]
