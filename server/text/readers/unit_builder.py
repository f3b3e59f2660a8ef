"""Construction of units from the pieces that a reader finds."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from server.interface.interruption import checkpoint
from server.text.items.kinds import ItemKind
from server.text.readers.placeholders import Found, Kind, find_placeholders
from server.text.readers.units import OBJECT, ProtectedSpan, Tag, Unit
from server.text.readers.unknown_characters import UnknownCharacters

_SPACE = " \t\n\r\f"  # of HTML: a no-break space is none
_SPACES = re.compile(f"[{_SPACE}]+")

# Between numbers models write other signs for these.
_READ_AS = {"×": "x", "±": "+/-"}
# Models end a sentence behind `4 p.m.`, also where the next word goes on with it.
_DOTTED_MERIDIEM = re.compile(r"([AaPp])\.([Mm])\.")
_GOES_ON = re.compile(r"[,;:)]|\s+[^\W_A-Z]")

# Tags are placed and written by recursion. Browsers nest up to 512 elements, documents written by people fewer.
_MAX_DEPTH = 200
_MAX_STRAYS = 100  # closing tags of elements opened elsewhere, each around all text before it


@dataclass(slots=True)
class _Node:
    """A tag under construction."""

    name: str
    start: int
    end: int
    opening: str
    closing: str
    parent: int
    is_open: bool = False  # it has no closing yet

    @property
    def range(self) -> tuple[int, int]:
        return self.start, self.end


@dataclass(slots=True)
class UnitBuilder:
    """Builds a unit from the pieces that a reader finds.

    Tags that are nested too deeply become marks: opening and closing stand by themselves, beside the same words.
    """

    unknown: UnknownCharacters
    escape: Callable[[str], str] = str
    collapses_space: bool = False  # as HTML does
    _raw: list[str] = field(default_factory=list)
    _text: str = ""
    _nodes: list[_Node] = field(default_factory=list)
    _open: list[int] = field(default_factory=list)  # indices of nodes, outer ones first
    _too_deep: Counter[str] = field(default_factory=Counter)  # names of open tags that became marks
    _num_strays: int = 0
    _protected: list[ProtectedSpan] = field(default_factory=list)
    _last: int = -1  # the node whose markup came last, unless text came after it

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was added."""
        return not self._raw

    def text(self, text: str, raw: str) -> None:
        """Add text; placeholders and unknown characters in it are protected."""
        self._raw.append(raw)
        position = 0
        for found in find_placeholders(text, self.unknown):
            checkpoint()
            self._plain(text[position : found.start])
            content = text[found.start : found.end]
            match found.kind:
                case Kind.OPENING:
                    self._open_tag(found.name, self.escape(content))
                case Kind.CLOSING:
                    self._close_tag(found.name, self.escape(content))
                case Kind.MARK:
                    self._mark(self.escape(content))
                case Kind.ITEM:
                    assert found.item is not None
                    shown = self.unknown.with_plainer_forms(_as_read(content, text, found))
                    self._protect(shown, self.escape(content), found.item)
            position = found.end
        self._plain(text[position:])

    def protect(self, raw: str) -> None:
        """Add a protected span: it stays as it is, and has a position in the sentence as a word has."""
        self._raw.append(raw)
        self._protect(OBJECT, raw, ItemKind.MARKUP)

    def code(self, raw: str) -> None:
        """Add code between backticks, which the model reads."""
        self._raw.append(raw)
        kind = ItemKind.WORD if any(map(self.unknown.is_lost, raw)) else ItemKind.CODE_SPAN
        self._protect(raw, self.escape(raw), kind)

    def mark(self, raw: str) -> None:
        """Add markup without words, such as an image or a comment: sentences are complete without it."""
        self._raw.append(raw)
        self._mark(raw)

    def open(self, name: str, raw: str) -> None:
        """Add an opening tag; its closing comes later, or in another unit."""
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
        """Close the last open tag of this name, or one that was opened in another unit if there is none."""
        self._raw.append(raw)
        self._close_tag(name, raw)

    def _close_tag(self, name: str, raw: str) -> None:
        if self._too_deep[name]:
            self._too_deep[name] -= 1
            self._mark(raw)
            return
        if all(self._nodes[index].name != name for index in self._open):
            self._close_foreign(name, raw)
            return
        self._too_deep.clear()
        while True:  # tags inside it that were never closed end with it
            index = self._open.pop()
            node = self._nodes[index]
            node.end = len(self._text)
            if node.name == name:
                node.closing, node.is_open = raw, False
                self._last = index
                return

    def build(self) -> Unit:
        """Return the unit; tags that are still open end with it."""
        for index in self._open:
            self._nodes[index].end = len(self._text)
        tags = tuple(
            Tag(node.start, node.end, node.opening, node.closing, node.parent, node.is_open) for node in self._nodes
        )
        return Unit("".join(self._raw), self._text, tags, tuple(self._protected), self.escape)

    @property
    def _parent(self) -> int:
        return self._open[-1] if self._open else -1

    def _add(self, node: _Node) -> None:
        checkpoint()
        self._last = len(self._nodes)
        self._nodes.append(node)

    def _close_foreign(self, name: str, raw: str) -> None:
        """Add a closing tag around all text since the innermost open tag."""
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

    def _protect(self, shown: str, output: str, kind: ItemKind) -> None:
        self._protected.append(ProtectedSpan(len(self._text), len(self._text) + len(shown), output, kind))
        self._text += shown
        self._last = -1

    def _mark(self, raw: str) -> None:
        self._add(_Node("", len(self._text), len(self._text), raw, "", self._parent))

    def _plain(self, text: str) -> None:
        text = self._without_second_space(self.unknown.with_plainer_forms(text))
        if self.collapses_space and text:
            text = self._collapsed(text)
        if text:
            self._text += text
            self._last = -1

    def _without_second_space(self, text: str) -> str:
        """Move white space behind a tag into it if there is some in front, which would be doubled without the tag."""
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
        """Collapse white space as HTML does, except in front of all text."""
        core = text.strip(_SPACE)
        front = text[: len(text) - len(text.lstrip(_SPACE))]
        needs_space = bool(front) and self._text[-1:] not in _SPACE
        kept = " " * needs_space if self._text else front
        if not core:
            return kept
        return kept + _SPACES.sub(" ", core) + (" " if text[-1] in _SPACE else "")


def _as_read(content: str, text: str, found: Found) -> str:
    """Return the content of an item found in a text in the form that models read best."""
    if found.item in (ItemKind.TIME, ItemKind.RANGE) and _GOES_ON.match(text, found.end):
        return _DOTTED_MERIDIEM.sub(r"\1\2", content)
    return _READ_AS.get(content, content) if text[found.start - 1 : found.start].isspace() else content
