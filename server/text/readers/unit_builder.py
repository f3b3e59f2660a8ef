"""Construction of units from the pieces that a reader finds."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import attrgetter

import regex

from server.interface.interruption import checkpoint
from server.text.readers.units import DIVIDER, OBJECT, ProtectedSpan, Tag, Unit
from server.text.spans import Span, SpanKind, find_spans
from server.text.unknown_characters import UnknownCharacters

_SPACE = " \t\n\r\f"  # of HTML: a no-break space is not white space there
_SPACES = re.compile(f"[{_SPACE}]+")
# Characters that draw nothing, inside a word; directional marks, inside a number or a range. A tokenizer reads some of
# them as a blank.
_INVISIBLE = re.compile(
    "(?<=\\S)[\u00ad\u2060\ufeff]+(?=\\S)|(?<=\\d)[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]+(?=[-\u2013:/.,\\d])"
)

_MAY_BE_INVISIBLE = re.compile("[\u00ad\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
# Characters that mean something in a unit: those of a document are marks.
_POINTS = re.compile(f"([{DIVIDER}{OBJECT}])")

# Tags of plain text: in pairs around words, or alone; those in square brackets in pairs only.
_TAG = regex.compile(
    r"(?<!<)</?(?:(?P<name>[A-Za-z][\w:.-]*+)(?:\s[^<>\n]*+)?|(?P<name>\d++)\s?)/?>(?!>)"
    r"|\[/?(?P<name>[A-Za-z]++)(?:[= ][^\[\]\n]*+)?\]"
)
# A tag without attributes between words, which names an element, a key or a value: a word of the sentence.
_TAG_AS_WORD = regex.compile(r"(?<=[\w,:][ \u00a0][(\"']?)</?[A-Za-z][\w:.-]*+>(?=[\s.,;:!?)\"'-]|$)")

# Tags are placed and written by recursion. Browsers nest up to 512 elements, documents written by people fewer.
_MAX_DEPTH = 200
_MAX_STRAYS = 100  # closing tags of elements opened elsewhere, each around all text before it
_MAX_RAISED = 12  # characters of a footnote mark or an exponent
_MAX_TOUCHING = 8  # tags in front of a mark that are looked at
_LOWERED = "sub"
_RAISED = frozenset(("sup", _LOWERED))
_VARIABLE = regex.compile(r"(?<![\p{L}\p{M}\d])\p{L}{1,2}\Z")
# A variable with an exponent, as in x²; not a square metre, nor a word with a footnote.
_POWER = regex.compile(r"(?<![\p{L}\p{M}\d])(?![mAI])[\p{Latin}\p{Greek}]\Z")
_EXPONENT = regex.compile(r"[+−-]?\d{1,4}")
_INDEX = regex.compile(r"(?=.*\p{L})[\p{L}\d+,−-]{1,8}")
_MARKS = "*†‡§¶"  # of footnotes
_BRACKETS = "()[]"
_CLOSING = ("Po", "Pe", "Pf", "Pi")  # Unicode's categories of signs that a mark of a footnote may stand behind
_MIN_WORD = 3  # letters of a word with a letter as its footnote mark; other letters are endings, as of an ordinal


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
    replaces_blank: bool = False
    is_absorbed: bool = False  # part of the output of a span


@dataclass(slots=True)
class UnitBuilder:
    """Builds a unit from the pieces that a reader finds.

    Spans are found in the text that a reader sees: tags inside one belong to it. Tags that are nested too deeply become
    marks: opening and closing stand by themselves, next to the same words.
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
        """Add text. Tags in it are tags of the unit."""
        self._raw.append(raw)
        position = 0
        for start, end, name, is_closing in _tags(text) if "<" in text or "[/" in text else ():
            self._plain(text[position:start])
            content = self.escape(text[start:end])
            if not name:
                self._mark(content)
            elif is_closing:
                self._close_tag(name, content)
            else:
                self._open_tag(name, content)
            position = end
        self._plain(text[position:])

    def protect(self, raw: str) -> None:
        """Add a protected span: it stays as it is, and has a position in the sentence as a word has."""
        self._raw.append(raw)
        start = len(self._text)
        self._text += OBJECT
        self._protected.append(ProtectedSpan(start, len(self._text), raw))
        self._last = -1

    def mark(self, raw: str) -> None:
        """Add markup without words, such as an image or a comment: sentences are complete without it."""
        self._raw.append(raw)
        self._mark(raw)

    def space(self, raw: str) -> None:
        """Add a blank that is written as `raw`, such as `&nbsp;`."""
        self._raw.append(raw)
        self._mark(raw, replaces_blank=True)
        if not self._text.endswith(" "):
            self._text += " "

    def open(self, name: str, raw: str) -> None:
        """Add an opening tag; its closing comes later, or in another unit."""
        self._raw.append(raw)
        self._open_tag(name, raw)

    def close(self, name: str, raw: str) -> None:
        """Close the last open tag of this name, or one that was opened in another unit if there is none."""
        self._raw.append(raw)
        self._close_tag(name, raw)

    def build(self) -> Unit:
        """Return the unit; tags that are still open end with it."""
        for index in self._open:
            self._nodes[index].end = len(self._text)
        if self._nodes:
            self._raise_marks()
        protected = self._spans()
        kept = [node for node in self._nodes if not node.is_absorbed]
        places = {id(node): place for place, node in enumerate(kept)}
        tags = tuple(
            Tag(
                node.start, node.end, node.opening, node.closing, places.get(id(self._kept_parent(node)), -1),
                node.is_open, node.replaces_blank,
            )
            for node in kept
        )  # fmt: skip
        return Unit("".join(self._raw), self._text, tags, protected, self.escape)

    def _kept_parent(self, node: _Node) -> _Node | None:
        """Return the innermost tag around a tag that is not part of a span."""
        while node.parent >= 0:
            node = self._nodes[node.parent]
            if not node.is_absorbed:
                return node
        return None

    def _raise_marks(self) -> None:
        """Make marks of elements without letters directly behind a word: footnote marks, exponents.

        A model reads the word without them, and a mark stands directly behind the translation of the word.
        """
        by_start = _ByStart(self._nodes)
        raised: list[tuple[int, int]] = []
        for node in self._nodes:
            start, end = node.start, node.end
            if not 0 < end - start <= _MAX_RAISED or (raised and start < raised[-1][1]):
                continue
            tags = by_start.between(start, end)
            is_script = any(self._nodes[each].name in _RAISED for each in tags if self._nodes[each].end == end)
            if self._is_raised(node, is_script=is_script):
                node.opening, node.closing = self._absorbed(start, end, tags), ""
                node.is_absorbed = False
                raised.append((start, end))
        if raised:
            self._remove(raised)

    def _is_raised(self, node: _Node, *, is_script: bool) -> bool:
        """Return whether an element is a mark: digits or signs, or one letter that is no ending, behind a word."""
        start, end = node.start, node.end
        content, before = self._text[start:end], self._text[start - 1 : start]
        if node.is_open or not node.opening or not before or self._text[end : end + 1].isalnum():
            return False
        if any(each.isspace() or each == OBJECT for each in content):
            return False
        if any(map(str.isalpha, content)):
            word = self._text[max(start - _MIN_WORD, 0) : start]
            is_word = len(word) == _MIN_WORD and word.isalpha() and word.islower()
            return is_script and is_word and len(content.strip(_BRACKETS)) == 1
        if is_script and self._is_power(node):
            return False
        if is_script:
            return before.isalnum() or unicodedata.category(before) in _CLOSING
        return before.isalpha() and any(each.isdigit() or each in _MARKS for each in content)

    def _is_power(self, node: _Node) -> bool:
        """Return whether an element is the exponent or the index of a variable."""
        is_variable = _POWER.search(self._text, max(node.start - _MAX_RAISED, 0), node.start) is not None
        return is_variable and _EXPONENT.fullmatch(self._text, node.start, node.end) is not None

    def _remove(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Take ranges, in their order, out of the text."""
        kept, position = [], 0
        for start, end in ranges:
            kept.append(self._text[position:start])
            position = end
        self._text = "".join((*kept, self._text[position:]))
        ends = [end for _, end in ranges]
        removed = [0, *accumulate(end - start for start, end in ranges)]

        def moved(place: int) -> int:
            num_before = bisect_right(ends, place)
            inside = max(place - ranges[num_before][0], 0) if num_before < len(ranges) else 0
            return place - removed[num_before] - inside

        for node in self._nodes:
            node.start, node.end = moved(node.start), moved(node.end)
        self._protected = [replace(each, start=moved(each.start), end=moved(each.end)) for each in self._protected]

    def _spans(self) -> tuple[ProtectedSpan, ...]:
        """Return all spans. Tags inside a span are part of its output, and no longer tags of the unit."""
        given, spans = self._protected, self._with_variables(find_spans(self._text, self.unknown))
        if not spans:
            return tuple(given)
        by_start = _ByStart(self._nodes)
        starts = [each.start for each in given]
        found: list[ProtectedSpan] = []
        taken: set[int] = set()
        for span in spans:
            inside = range(bisect_left(starts, span.start), bisect_left(starts, span.end))
            if inside and span.end - span.start == len(OBJECT):
                continue  # given already
            tags = by_start.between(span.start, span.end)
            if by_start.has_border_inside(span.start, span.end):
                self._stretch_tags(span.start, span.end)
            text = self._text[span.start : span.end]
            output = self._absorbed(span.start, span.end, tags, [given[each] for each in inside])
            is_readable = OBJECT not in text and not any(map(self.unknown.is_lost, text))
            kind = span.kind if is_readable or span.kind is SpanKind.SYMBOL else SpanKind.UNKNOWN
            found.append(ProtectedSpan(span.start, span.end, output, kind, is_readable))
            taken.update(inside)
        rest = [each for index, each in enumerate(given) if index not in taken]
        return tuple(sorted([*found, *rest], key=attrgetter("start")))

    def _with_variables(self, spans: list[Span]) -> list[Span]:
        """Return the spans and variables with an index or an exponent, such as `x<sub>i</sub>`: no model reads `xi`."""
        found: list[Span] = []
        starts = [span.start for span in spans]
        for node in self._nodes:
            is_index = node.name == _LOWERED and _INDEX.fullmatch(self._text, node.start, node.end) is not None
            if not is_index and not (node.name in _RAISED and self._is_power(node)):
                continue
            letters = _VARIABLE.search(self._text, max(node.start - _MAX_RAISED, 0), node.start)
            before = bisect_left(starts, node.end) - 1
            is_free = letters is not None and (before < 0 or spans[before].end <= letters.start())
            if letters is not None and is_free and not self._text[node.end : node.end + 1].isalnum():
                found.append(Span(letters.start(), node.end, SpanKind.IDENTIFIER))
        return sorted([*spans, *found], key=attrgetter("start")) if found else spans

    def _stretch_tags(self, start: int, end: int) -> None:
        """Move tags that begin or end inside a span to its borders, around the span as long as none would cross."""
        borders = [
            node
            for node in self._nodes
            if (start < node.start < end or start < node.end < end)
            and not (start <= node.start and node.end <= end and node.opening and not node.is_open)
        ]
        begins = [node for node in borders if start < node.start]
        ends = [node for node in borders if node.end < end]
        would_cross = any(node.start < start for node in ends) and any(node.end > end for node in begins)
        for node in begins:
            node.start = end if would_cross else start
        for node in ends:
            node.end = end

    def _absorbed(self, start: int, end: int, tags: Sequence[int], given: Sequence[ProtectedSpan] = ()) -> str:
        """Return a part of the text as it is in the document, and take the tags inside it out of the unit."""
        outputs, position = list[str](), start
        inner = iter(given)
        span = next(inner, None)
        open_: list[int] = []

        def write_until(place: int) -> None:
            nonlocal position, span
            while span is not None and span.start < place:
                outputs.extend((self.escape(self._text[position : span.start]), span.output))
                position, span = span.end, next(inner, None)
            outputs.append(self.escape(self._text[position:place]))
            position = max(position, place)

        def close_until(parent: int) -> None:
            while open_ and open_[-1] != parent:
                node = self._nodes[open_.pop()]
                write_until(node.end)
                outputs.append(node.closing)

        for index in sorted(tags):
            node = self._nodes[index]
            is_inside = node.parent >= 0 and self._nodes[node.parent].is_absorbed
            is_mark_at_edge = node.start == node.end and node.start in (start, end) and not is_inside
            if node.end > end or is_mark_at_edge or not node.opening or node.is_open or node.is_absorbed:
                continue
            close_until(node.parent)
            write_until(node.start)
            outputs.append(node.opening)
            open_.append(index)
            node.is_absorbed = True
        close_until(-1)
        write_until(end)
        return "".join(outputs)

    @property
    def _parent(self) -> int:
        return self._open[-1] if self._open else -1

    def _add(self, node: _Node) -> None:
        checkpoint()
        self._last = len(self._nodes)
        self._nodes.append(node)

    def _open_tag(self, name: str, raw: str) -> None:
        if len(self._open) >= _MAX_DEPTH:
            self._too_deep[name] += 1
            self._mark(raw)
            return
        self._add(_Node(name, len(self._text), len(self._text), raw, "", self._parent, is_open=True))
        self._open.append(self._last)

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

    def _mark(self, raw: str, *, replaces_blank: bool = False) -> None:
        place = len(self._text)
        self._add(_Node("", place, place, raw, "", self._parent, replaces_blank=replaces_blank))

    def _plain(self, text: str) -> None:
        if DIVIDER in text or OBJECT in text:
            first, *others = _POINTS.split(text)
            self._plain(first)
            for point, other in zip(others[::2], others[1::2], strict=True):
                self._mark(self.escape(point))
                self._plain(other)
            return
        visible = text if text.isascii() or _MAY_BE_INVISIBLE.search(text) is None else _INVISIBLE.sub("", text)
        text = self._without_second_space(self.unknown.with_plainer_forms(visible))
        if self.collapses_space and text:
            text = self._collapsed(text)
        if not text:
            return
        if self._last >= 0 and self._text.endswith(" ") and not (text[0].isalnum() or text[0].isspace()):
            self._take_blank(self._nodes[self._last])
        self._text += text
        self._last = -1

    def _take_blank(self, node: _Node) -> None:
        """Move the blank in front of a mark or an empty element into it: without the mark, a sign follows a word."""
        place = len(self._text)
        is_point = node.start == node.end == place and not (node.is_open or node.replaces_blank) and bool(node.opening)
        if DIVIDER in node.opening:
            return
        has_space_behind = (node.opening + node.closing)[-1:].isspace()
        if (
            is_point
            and not has_space_behind
            and not any(place in (each.start, each.end) for each in self._nodes[:-1][-_MAX_TOUCHING:])
        ):
            self._text = self._text[:-1]
            node.opening = f" {node.opening}"
            node.start = node.end = place - 1

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


class _ByStart:
    """The indices of tags by where they begin."""

    def __init__(self, nodes: Sequence[_Node]) -> None:
        self._order = sorted(range(len(nodes)), key=lambda index: nodes[index].start)
        self._starts = [nodes[index].start for index in self._order]
        self._borders = sorted(place for node in nodes for place in (node.start, node.end))

    def has_border_inside(self, start: int, end: int) -> bool:
        """Return whether a tag begins or ends between two places."""
        return bisect_right(self._borders, start) < bisect_left(self._borders, end)

    def between(self, start: int, end: int) -> Sequence[int]:
        """Return the tags that begin there, outer ones first."""
        return self._order[bisect_left(self._starts, start) : bisect_right(self._starts, end)]


def _tags(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yield start, end and name of the tags of a plain text, and whether they close one; a mark has no name."""
    found: list[tuple[int, int, str, bool]] = []
    open_: list[int] = []  # indices in `found`
    paired: set[int] = set()
    for match in _TAG.finditer(text):
        checkpoint()
        name, written = match["name"] or "", match.group()
        is_closing = written[1] == "/"
        if is_closing and (index := next((each for each in reversed(open_) if found[each][2] == name), -1)) >= 0:
            del open_[open_.index(index) :]
            paired |= {index, len(found)}
        elif not is_closing and not written.endswith("/>"):
            open_ = [*open_[-_MAX_DEPTH:], len(found)]
        found.append((*match.span(), name, is_closing))
    for index, (start, end, name, is_closing) in enumerate(found):
        if index in paired:
            yield start, end, name, is_closing
        elif text[start] == "<" and not _TAG_AS_WORD.match(text, start):
            yield start, end, "", is_closing
