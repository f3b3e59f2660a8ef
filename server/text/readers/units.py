"""Units of translation (a paragraph, a cell, a line), with their inline tags and protected spans."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from server.text.spans import SpanKind

OBJECT = "\N{OBJECT REPLACEMENT CHARACTER}"  # replaces everything in a unit's text that is no text
# Divides a text into pieces, such as the captions that a sentence runs over: a mark, which alignment places such that
# the words of each piece are translations of the words of that piece.
DIVIDER = "\N{INFORMATION SEPARATOR ONE}"


@dataclass(frozen=True, slots=True)
class Tag:
    """Markup around `text[start:end]`, which is not part of the model input; `start` == `end` is a single position.

    `parent` is the index of the tag around it in the unit's tags, or -1. Siblings are in their order. A tag that
    `begins_before` the unit has no opening in it, and one that `ends_behind` it (or with its parent) no closing. One
    that `replaces_blank` stands in place of the blank next to it.
    """

    start: int
    end: int
    opening: str
    closing: str = ""
    parent: int = -1
    ends_behind: bool = False
    replaces_blank: bool = False

    @property
    def begins_before(self) -> bool:
        """Return whether it was opened in another unit."""
        return not self.opening

    @property
    def divides(self) -> bool:
        """Return whether it is a `DIVIDER`."""
        return DIVIDER in self.opening


@dataclass(frozen=True, slots=True)
class ProtectedSpan:
    """A span `text[start:end]` that must survive: `output` is what it is in the document.

    A model can read its text if it `is_readable`.
    """

    start: int
    end: int
    output: str
    kind: SpanKind = SpanKind.MARKUP
    is_readable: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """Text to translate; `raw` is its source in the document, and its output if there is nothing to translate.

    The time of a query about one sentence does not grow with the number of sentences.
    """

    raw: str
    text: str
    tags: tuple[Tag, ...]
    protected: tuple[ProtectedSpan, ...]  # in their order
    escape: Callable[[str], str]
    # Positions of tags with their indices, sorted.
    _borders: Sequence[tuple[int, int]] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tags:
            borders = sorted((border, index) for index, tag in enumerate(self.tags) for border in (tag.start, tag.end))
            object.__setattr__(self, "_borders", borders)  # as the dataclass itself does, because it is frozen

    @property
    def has_words(self) -> bool:
        """Return whether there is a letter outside protected spans."""
        return any(map(str.isalpha, self.masked(" ") if self.protected else self.text))

    @property
    def is_plain(self) -> bool:
        """Return whether there are neither tags nor protected spans."""
        return not (self.tags or self.protected)

    def cuts(self, start: int, end: int) -> list[int]:
        """Return the positions from `start` to `end` where tags begin or end, in their order."""
        return [position for position, _ in self._borders_of(start, end)]

    def tags_of(self, start: int, end: int) -> list[Tag]:
        """Return the tags that begin or end there; all others are around all of it or none of it."""
        return [self.tags[index] for index in sorted({index for _, index in self._borders_of(start, end)})]

    def protected_in(self, start: int, end: int) -> tuple[ProtectedSpan, ...]:
        """Return the protected spans that are completely inside `text[start:end]`."""
        first = bisect_left(self.protected, start, key=attrgetter("start"))
        return self.protected[first : bisect_right(self.protected, end, key=attrgetter("end"))]

    def is_inside_protected(self, position: int) -> bool:
        """Return whether the characters on both sides of a position are in the same protected span."""
        last = bisect_left(self.protected, position, key=attrgetter("start")) - 1
        return last >= 0 and position < self.protected[last].end

    def masked(self, mask: str, start: int = 0, end: int | None = None) -> str:
        """Return `text[start:end]` with each character of protected spans replaced by `mask`, in the same length."""
        if not self.protected:
            return self.text[start:end]
        return self._replaced(lambda length, _: mask * length, start, len(self.text) if end is None else end)

    def segmentable(self) -> str:
        """Return the text, in the same length, with a word for each span but symbols: a span ends no sentence."""
        if not self.protected:
            return self.text
        return self._replaced(lambda length, kind: None if kind is SpanKind.SYMBOL else "X" + "e" * (length - 1))

    def _replaced(
        self, replacement: Callable[[int, SpanKind], str | None], start: int = 0, end: int | None = None
    ) -> str:
        """Return `text[start:end]` with a replacement of the same length for each protected span, or without."""
        end = len(self.text) if end is None else end
        first = bisect_right(self.protected, start, key=attrgetter("end"))
        last = bisect_left(self.protected, end, key=attrgetter("start"))
        parts, position = [], start
        for each in self.protected[first:last]:
            stop = min(each.end, end)
            if (written := replacement(stop - max(each.start, start), each.kind)) is not None:
                parts += [self.text[position : each.start], written]
                position = stop
        return "".join((*parts, self.text[position:end]))

    def _borders_of(self, start: int, end: int) -> Sequence[tuple[int, int]]:
        return self._borders[bisect_left(self._borders, (start, 0)) : bisect_left(self._borders, (end + 1, 0))]


def filled(text: str, outputs: Iterator[str], escape: Callable[[str], str] = str) -> str:
    """Return an escaped text with the next of the `outputs` for each `OBJECT`."""
    first, *others = text.split(OBJECT)
    return escape(first) + "".join([next(outputs, OBJECT) + escape(other) for other in others])


# Units are translated, strings stay as they are.
Document = list[str | Unit]
