"""Items of a text, in its order: at each position the first pattern that matches."""

import heapq
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

import regex

from server.interface.interruption import checkpoint
from server.text.items.kinds import ItemKind
from server.text.items.patterns import NEEDED, PATTERNS


@cache
def _compiled(index: int) -> "regex.Pattern[str]":
    """Return a pattern, compiled at its first use: all of them together take 45 ms."""
    return regex.compile(PATTERNS[index][1])


def compile_patterns() -> None:
    """Compile all patterns: processes that are forked afterwards share them."""
    for index in range(len(PATTERNS)):
        _compiled(index)


def _indices(kinds: Collection[ItemKind]) -> tuple[int, ...]:
    return tuple(index for index, (kind, _) in enumerate(PATTERNS) if kind in kinds)


# What a text must contain, and the indices of the patterns that are tried then.
_NEEDED = tuple((regex.compile(needed), _indices(kinds)) for needed, kinds in NEEDED.items())
_ALWAYS_TRIED = _indices(frozenset(ItemKind).difference(*NEEDED.values()))


@dataclass(frozen=True, slots=True)
class ItemMatch:
    """An item `text[start:end]`."""

    start: int
    end: int
    kind: ItemKind


def find_items(text: str) -> Iterator[ItemMatch]:
    """Yield the items of a text, without overlaps, as a search for all alternatives at once finds them.

    One search a pattern takes an eighth of the time of one pattern with all alternatives: most patterns need a
    character that a text lacks, and a search for it alone is fast.
    """
    # The next match of each pattern: its start, the index of the pattern, its end.
    upcoming: list[tuple[int, int, int]] = []
    for needed, indices in _NEEDED:
        if needed.search(text):
            _add_first(text, indices, upcoming)
    _add_first(text, _ALWAYS_TRIED, upcoming)
    heapq.heapify(upcoming)
    position = 0
    while upcoming:
        start, index, end = upcoming[0]
        if start >= position:
            position = end
            yield ItemMatch(start, end, PATTERNS[index][0])
        if match := _compiled(index).search(text, position):
            heapq.heapreplace(upcoming, (match.start(), index, match.end()))
        else:
            heapq.heappop(upcoming)


def _add_first(text: str, indices: Iterable[int], upcoming: list[tuple[int, int, int]]) -> None:
    """Add the first match of each of these patterns."""
    for index in indices:
        checkpoint()
        if match := _compiled(index).search(text):
            upcoming.append((match.start(), index, match.end()))
