"""Items of a text, in its order: at each position the first pattern that matches."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import regex

from server.interface.interruption import checkpoint
from server.text.items.kinds import ItemKind
from server.text.items.patterns import PATTERNS

# One search a pattern takes an eighth of the time of one pattern with all alternatives: most patterns need a character
# that a text lacks, and a search for it alone is fast.
_COMPILED = tuple((kind, regex.compile(pattern)) for kind, pattern in PATTERNS)


@dataclass(frozen=True, slots=True)
class ItemMatch:
    """An item `text[start:end]`."""

    start: int
    end: int
    kind: ItemKind


def find_items(text: str) -> Iterator[ItemMatch]:
    """Yield the items of a text, without overlaps, as a search for all alternatives at once finds them."""
    # The next match of each pattern: its start, the index of the pattern, its end.
    upcoming: list[tuple[int, int, int]] = []
    for index, (_, pattern) in enumerate(_COMPILED):
        checkpoint()
        if match := pattern.search(text):
            upcoming.append((match.start(), index, match.end()))
    heapq.heapify(upcoming)
    position = 0
    while upcoming:
        start, index, end = upcoming[0]
        kind, pattern = _COMPILED[index]
        if start >= position:
            position = end
            yield ItemMatch(start, end, kind)
        if match := pattern.search(text, position):
            heapq.heapreplace(upcoming, (match.start(), index, match.end()))
        else:
            heapq.heappop(upcoming)
