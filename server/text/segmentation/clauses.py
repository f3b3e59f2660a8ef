"""Division of sentences that are longer than the model takes."""

from collections.abc import Callable
from functools import cache

import regex

from server.text.language_tables import Words, table_of

# Marks that end a clause: those of alphabets before a space ("3,000" and "12:30" stay whole), the others anywhere.
_CLAUSE_END = regex.compile(r"[;:,.!?…)\]»”’\"'](?=\s)|[—、，；：。！？؛،]")
_SPACE = regex.compile(r"\s+")
# \X alone goes back from each letter of a flag to the first of a row of flags.
_GRAPHEME = regex.compile(r"\p{Regional_Indicator}{1,2}+[\p{M}\u200d]*+|\X")

# Clauses shorter than this share of the limit are not split off: the rest would be divided more often.
_SHORTEST_CLAUSE = 0.25


def longest_piece(text: str, fits: Callable[[str], bool], language: str) -> int:
    """Return how many characters of `text` fit and end as naturally as possible; at least 1.

    Tried in turn: the last clause end, conjunction of `language`, space and grapheme border within the longest prefix
    that fits.
    """
    limit = _longest_prefix(text, fits)
    shortest_clause = max(1, int(limit * _SHORTEST_CLAUSE))
    before_conjunction = _before_any(table_of(language).conjunctions)
    for pattern, shortest in (
        (_CLAUSE_END, shortest_clause),
        (before_conjunction, shortest_clause),
        (_SPACE, 1),
        (_GRAPHEME, 1),
    ):
        ends = (match.end() for match in pattern.finditer(text[: limit + 1]))
        for end in reversed([end for end in ends if shortest <= end <= limit]):
            # Token counts are not strictly monotone in the length, so the very piece is counted.
            if fits(text[:end].rstrip()):
                return end
    return limit


def _longest_prefix(text: str, fits: Callable[[str], bool]) -> int:
    """Return the length of the longest prefix that bisection finds to fit, or 1."""
    low, high = 1, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if fits(text[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


@cache
def _before_any(words: Words) -> "regex.Pattern[str]":
    """Return a pattern of the space before any of these words."""
    return regex.compile(rf"\s(?=(?:{'|'.join(map(regex.escape, words)) or '(?!)'})\s)", regex.IGNORECASE)
