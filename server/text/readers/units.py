"""What is translated as a whole (a paragraph, a cell, a line), with its inline tags and what must stay unchanged."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from server.text.readers.placeholders import Kind, find
from server.text.readers.unknown_characters import UnknownCharacters

OBJECT = "\N{OBJECT REPLACEMENT CHARACTER}"  # stands in a unit's text for something that is no text


@dataclass(frozen=True, slots=True)
class Tag:
    """Something around `text[start:end]` that no model sees. `start` == `end`: something that stands at one place.

    `parent` is the place of the tag around it in the unit's tags, or -1. Siblings come in their order. One that
    `begins_before` the unit has no opening there, one that `ends_behind` it (or with its parent) no closing.
    """

    start: int
    end: int
    opening: str
    closing: str = ""
    parent: int = -1
    ends_behind: bool = False

    @property
    def begins_before(self) -> bool:
        """Whether it was opened in another unit."""
        return not self.opening


@dataclass(frozen=True, slots=True)
class Copied:
    """`text[start:end]` is not translated: it comes out as `output`."""

    start: int
    end: int
    output: str


@dataclass(frozen=True, slots=True)
class Unit:
    """Text to translate; `raw` is how it stood in the document, and what stays if there is nothing to translate.

    What is asked of a part of it, a sentence, takes no longer because the unit has many.
    """

    raw: str
    text: str
    tags: tuple[Tag, ...]
    copied: tuple[Copied, ...]  # in their order
    escape: Callable[[str], str]
    # Positions of tags with their indices, sorted.
    _borders: Sequence[tuple[int, int]] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.tags:
            borders = sorted((place, index) for index, tag in enumerate(self.tags) for place in (tag.start, tag.end))
            object.__setattr__(self, "_borders", borders)  # as the dataclass itself does, because it is frozen

    @property
    def has_words(self) -> bool:
        """Whether there is a letter outside of what is copied."""
        return any(map(str.isalpha, self.masked(" ")))

    @property
    def is_plain(self) -> bool:
        """Whether it is its text and nothing else."""
        return not (self.tags or self.copied)

    def cuts(self, start: int, end: int) -> list[int]:
        """Where tags begin and end from `start` to `end`, in their order."""
        return [place for place, _ in self._borders_of(start, end)]

    def tags_of(self, start: int, end: int) -> list[Tag]:
        """The tags that begin or end there; all others are around all of it or around nothing of it."""
        return [self.tags[number] for number in sorted({number for _, number in self._borders_of(start, end)})]

    def copied_of(self, start: int, end: int) -> tuple[Copied, ...]:
        """What is copied of `text[start:end]` and not beyond it."""
        first = bisect_left(self.copied, start, key=attrgetter("start"))
        return self.copied[first : bisect_right(self.copied, end, key=attrgetter("end"))]

    def is_inside_copied(self, place: int) -> bool:
        """Whether the characters on both sides of a place are of one thing that is copied."""
        last = bisect_left(self.copied, place, key=attrgetter("start")) - 1
        return last >= 0 and place < self.copied[last].end

    def masked(self, mask: str, start: int = 0, end: int | None = None) -> str:
        """`text[start:end]` with every character of what is copied replaced; as long as that."""
        end = len(self.text) if end is None else end
        if not self.copied:
            return self.text[start:end]
        first = bisect_right(self.copied, start, key=attrgetter("end"))
        last = bisect_left(self.copied, end, key=attrgetter("start"))
        parts, place = [], start
        for copied in self.copied[first:last]:
            stop = min(copied.end, end)
            parts += [self.text[place : copied.start], mask * (stop - max(copied.start, start))]
            place = stop
        return "".join((*parts, self.text[place:end]))

    def _borders_of(self, start: int, end: int) -> Sequence[tuple[int, int]]:
        return self._borders[bisect_left(self._borders, (start, 0)) : bisect_left(self._borders, (end + 1, 0))]


# What is copied or translated, in turn: strings are copied as they are.
Document = list[str | Unit]

_SPACE = " \t\n\r\f"

# Tags are placed and written by recursion. No browser nests more elements than 512, nobody who writes as many as these.
_MAX_DEPTH = 200
_MAX_STRAYS = 100  # closings of what was opened elsewhere, each around all before it


@dataclass(slots=True)
class _Node:
    """A tag in the making."""

    name: str
    start: int
    end: int
    opening: str
    closing: str
    parent: int
    is_open: bool = False  # it has no closing, at least yet

    @property
    def range(self) -> tuple[int, int]:
        return self.start, self.end


@dataclass(slots=True)
class UnitBuilder:
    """A unit put together from what a reader comes across, piece by piece.

    Tags that are nested too deeply are kept as marks: both ends by themselves, beside the words they stood beside.
    """

    symbols: UnknownCharacters
    escape: Callable[[str], str] = str
    collapses_space: bool = False  # as HTML does
    _raw: list[str] = field(default_factory=list)
    _text: str = ""
    _nodes: list[_Node] = field(default_factory=list)
    _open: list[int] = field(default_factory=list)  # places of nodes, outer ones first
    _too_deep: Counter[str] = field(default_factory=Counter)  # names of open tags that are only marks
    _num_strays: int = 0
    _copied: list[Copied] = field(default_factory=list)
    _last: int = -1  # the node whose mark-up came last, if no text has come since

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come yet."""
        return not self._raw

    def text(self, text: str, raw: str) -> None:
        """Text; placeholders and characters that the model does not know are found in it."""
        self._raw.append(raw)
        place = 0
        for found in find(text, self.symbols):
            self._plain(text[place : found.start])
            content = text[found.start : found.end]
            match found.kind:
                case Kind.OPENING:
                    self._open_tag(found.name, self.escape(content))
                case Kind.CLOSING:
                    self._close_tag(found.name, self.escape(content))
                case Kind.MARK:
                    self._mark(self.escape(content))
                case Kind.WORD:
                    self._copy(content, self.escape(content))
            place = found.end
        self._plain(text[place:])

    def copied(self, raw: str) -> None:
        """Something that comes out as it is, and has a place in the sentence as a word has."""
        self._raw.append(raw)
        self._copy(OBJECT, raw)

    def mark(self, raw: str) -> None:
        """Something that comes out as it is and that no sentence misses: an image, a comment."""
        self._raw.append(raw)
        self._mark(raw)

    def open(self, name: str, raw: str) -> None:
        """A tag that is closed later on, or in another unit."""
        self._raw.append(raw)
        self._open_tag(name, raw)

    def _open_tag(self, name: str, raw: str) -> None:
        if len(self._open) >= _MAX_DEPTH:
            self._too_deep[name] += 1
            self._mark(raw)
            return
        self._add(_Node(name, len(self._text), len(self._text), raw, "", self._parent, is_open=True))
        self._open.append(self._last)

    def close(self, name: str, raw: str) -> None:
        """The end of the last open tag of this name; of one that was opened in another unit, if there is none."""
        self._raw.append(raw)
        self._close_tag(name, raw)

    def _close_tag(self, name: str, raw: str) -> None:
        if self._too_deep[name]:
            self._too_deep[name] -= 1
            self._mark(raw)
            return
        if all(self._nodes[place].name != name for place in self._open):
            self._close_foreign(name, raw)
            return
        self._too_deep.clear()
        while True:  # tags inside it that were never closed end with it
            place = self._open.pop()
            node = self._nodes[place]
            node.end = len(self._text)
            if node.name == name:
                node.closing, node.is_open = raw, False
                self._last = place
                return

    def build(self) -> Unit:
        """The unit; what is still open ends with it."""
        for place in self._open:
            self._nodes[place].end = len(self._text)
        tags = tuple(
            Tag(node.start, node.end, node.opening, node.closing, node.parent, node.is_open) for node in self._nodes
        )
        return Unit("".join(self._raw), self._text, tags, tuple(self._copied), self.escape)

    @property
    def _parent(self) -> int:
        return self._open[-1] if self._open else -1

    def _add(self, node: _Node) -> None:
        self._last = len(self._nodes)
        self._nodes.append(node)

    def _close_foreign(self, name: str, raw: str) -> None:
        """A closing tag around everything since the innermost tag that is still open."""
        if self._num_strays >= _MAX_STRAYS:
            self._mark(raw)
            return
        self._num_strays += 1
        parent = self._parent
        start = self._nodes[parent].start if parent >= 0 else 0
        inside = [node for node in self._nodes if node.parent == parent]
        self._add(_Node(name, start, len(self._text), "", raw, parent))
        for node in inside:
            node.parent = self._last

    def _copy(self, shown: str, output: str) -> None:
        self._copied.append(Copied(len(self._text), len(self._text) + len(shown), output))
        self._text += shown
        self._last = -1

    def _mark(self, raw: str) -> None:
        self._add(_Node("", len(self._text), len(self._text), raw, "", self._parent))

    def _plain(self, text: str) -> None:
        text = self._without_second_space(self.symbols.readable(text))
        if self.collapses_space and text:
            text = self._collapsed(text)
        if text:
            self._text += text
            self._last = -1

    def _without_second_space(self, text: str) -> str:
        """White space on both sides of a tag would be twice as much without it: the second goes with the tag."""
        core = text.lstrip(_SPACE)
        if self._last < 0 or len(core) == len(text) or (self._text and self._text[-1] not in _SPACE):
            return text
        node = self._nodes[self._last]
        space = text[: len(text) - len(core)]
        if node.closing:
            node.closing += space
        else:
            node.opening += space
        return core

    def _collapsed(self, text: str) -> str:
        """White space as HTML shows it; that in front of all text stays as it is."""
        core = text.strip(_SPACE)
        front = text[: len(text) - len(text.lstrip(_SPACE))]
        needs_space = bool(front) and self._text[-1:] not in _SPACE
        kept = " " * needs_space if self._text else front
        if not core:
            return kept
        return kept + " ".join(core.split()) + (" " if text[-1] in _SPACE else "")
