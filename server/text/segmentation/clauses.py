"""Division of sentences that are longer than the model takes."""

from collections.abc import Callable, Iterator

import regex

# Marks that end a clause: those of alphabets before a space ("3,000" and "12:30" stay whole), the others anywhere.
_CLAUSE_END = regex.compile(r"[;:,.!?…)\]»”’\"'](?=\s)|[—、，；：。！？؛،]")
_CONJUNCTION = regex.compile(
    r"\s(?=(?:and|or|but|because|which|that|while|when|if|und|oder|aber|denn|weil|dass|während|wenn|"
    r"et|ou|mais|parce|que|qui|y|o|pero|porque|e|ma|perché|che)\s)",
    regex.IGNORECASE,
)
_SPACE = regex.compile(r"\s+")
# \X alone goes back from each letter of a flag to the first of a row of flags.
_GRAPHEME = regex.compile(r"\p{Regional_Indicator}{1,2}+[\p{M}\u200d]*+|\X")

# Clauses shorter than this share of the limit are not split off: the rest would be divided more often.
_SHORTEST_CLAUSE = 0.25


def longest_piece(text: str, fits: Callable[[str], bool]) -> int:
    """Return how many characters of `text` fit and end as naturally as possible; at least 1.

    Tried in turn: the last clause end, conjunction, space and grapheme border within the longest prefix that fits.
    """
    limit = _longest_prefix(text, fits)
    for ends in (_clause_ends, _conjunctions, _spaces, _grapheme_ends):
        shortest = 1 if ends in (_spaces, _grapheme_ends) else max(1, int(limit * _SHORTEST_CLAUSE))
        for end in reversed([end for end in ends(text[: limit + 1]) if shortest <= end <= limit]):
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


def _clause_ends(text: str) -> Iterator[int]:
    return (match.end() for match in _CLAUSE_END.finditer(text))


def _conjunctions(text: str) -> Iterator[int]:
    return (match.end() for match in _CONJUNCTION.finditer(text))


def _spaces(text: str) -> Iterator[int]:
    return (match.end() for match in _SPACE.finditer(text))


def _grapheme_ends(text: str) -> Iterator[int]:
    return (match.end() for match in _GRAPHEME.finditer(text))
