"""Search for many terms in a text: the longest one at each place.

The terms are a sorted list. The last term that is not greater than the text at a place begins with every term that the
text begins with there: one binary search finds the longest, and links from a term to its own beginnings find the
shorter ones. So the time for a place hardly depends on the number of terms, and nothing is compiled or cached.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import regex

_WORD_CHARACTER = regex.compile(r"\w")
_OUTSIDE_WORDS = regex.compile(r"(?<!\w)")


class TermIndex:
    """Finds terms between word boundaries, or with `anywhere` at every place. Immutable, so threads may share it."""

    def __init__(self, terms: Iterable[str], *, anywhere: bool = False) -> None:
        self._terms = sorted(set(terms))
        self._anywhere = anywhere
        self._max_characters = max(map(len, self._terms), default=0)
        self._first_characters = frozenset(term[0] for term in self._terms)
        # For each term the index of the longest other term that it begins with, or -1.
        self._beginnings: list[int] = []
        begun: list[int] = []
        for index, term in enumerate(self._terms):
            while begun and not term.startswith(self._terms[begun[-1]]):
                begun.pop()
            self._beginnings.append(begun[-1] if begun else -1)
            begun.append(index)

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of the longest term at each place. Terms may overlap."""
        if not self._terms:
            return
        starts = range(len(text)) if self._anywhere else map(_start_of, _OUTSIDE_WORDS.finditer(text))
        for start in starts:
            if text[start : start + 1] in self._first_characters and (end := self._longest(text, start)):
                yield start, end

    def _longest(self, text: str, start: int) -> int:
        """Return the end of the longest term at `start`; 0 for none."""
        index = bisect_right(self._terms, text[start : start + self._max_characters]) - 1
        while index >= 0:
            end = start + len(self._terms[index])
            if text.startswith(self._terms[index], start) and (self._anywhere or not _WORD_CHARACTER.match(text, end)):
                return end
            index = self._beginnings[index]
        return 0


def _start_of(match: "regex.Match[str]") -> int:
    return match.start()
