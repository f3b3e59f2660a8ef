"""Markup as a flat list of items, its paragraphs as units, and both rewritten: what all formats share that keep their
source byte for byte.

Every step takes time linear in the number of items, whatever the markup is. Markup that no translation touches is
written as it was read.
"""

import html
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from html.entities import html5
from itertools import accumulate
from typing import NamedTuple

from server.documents.fragment import Atom, Fragment, Inline, Wrap, as_window, has_words, joined
from server.documents.input import safe_xml
from server.documents.input.limits import Density
from server.documents.input.safe_xml import fit_for_xml
from server.interface.errors import DocumentTooComplex

Attributes = Mapping[str, str]

# Old names need no semicolon: &copy 2024.
_OLD_NAMES = "|".join(sorted((name for name in html5 if not name.endswith(";")), key=len, reverse=True))
_REFERENCE = re.compile(
    rf"(&(?:#[0-9]{{1,8}};|#[xX][0-9a-fA-F]{{1,6}};|[A-Za-z][A-Za-z0-9]{{0,31}};|(?:{_OLD_NAMES})))"
)
_WHITE_SPACE = re.compile(r"[ \t\r\n\f]+")


class Role(Enum):
    """Relation of an element to the text around it."""

    BLOCK = auto()  # a paragraph or a container of paragraphs: ends sentences
    VERBATIM = auto()  # a block that keeps its white space
    STRUCTURE = auto()  # contains blocks and has no text of its own
    BREAK = auto()  # ends sentences and contains nothing to translate
    SOFT = auto()  # formatting
    HARD = auto()  # a link and the like
    ATOM = auto()  # part of a sentence that is not translated
    ISLAND = auto()  # an atom that contains paragraphs, such as a footnote
    MARK = auto()  # lies inside a sentence without being part of it
    SPACE = auto()  # is read as a space


class Kind(Enum):
    """Relation of an item to the text around it."""

    TEXT = auto()
    OPEN = auto()  # of a wrap
    CLOSE = auto()
    ATOM = auto()
    BREAK = auto()  # ends a sentence: the tag of a block, a line break, a tab
    MARK = auto()  # lies inside the text without being part of it: a comment, a bookmark


class Cue(NamedTuple):
    """When a caption begins and ends, in seconds, and what tells it from others at the same time: a style, a region."""

    start: float
    end: float
    place: str = ""


class Item(NamedTuple):
    """One piece of markup: `raw` as written, `text` as a reader sees it. A tuple: a page has a hundred thousand.

    Paragraphs inside an atom or a break are in `inner`.
    """

    kind: Kind
    raw: str = ""
    text: str = ""
    is_soft: bool = True
    inner: tuple["Item", ...] = ()
    after: str = ""  # written behind `inner`
    name: str = ""  # of an HTML element with a meaning for the words around it
    cue: Cue | None = None  # of the text behind a break


def text_items(raw: str, *, collapses_space: bool = True) -> Iterator[Item]:
    """Yield a text of HTML or XML as items: one for each character that is written as a reference, and for the rest."""
    for index, piece in enumerate(_REFERENCE.split(raw) if "&" in raw else (raw,)):
        if piece:
            text = html.unescape(piece)
            yield Item(Kind.TEXT, piece, text if index % 2 or not collapses_space else _WHITE_SPACE.sub(" ", text))


def write_text(text: str) -> str:
    """Escape a translated text for XML and HTML."""
    return html.escape(safe_xml.fit_for_xml(text), quote=False)


# Bounds the tree of one paragraph, which the serving process holds while its text is translated.
_MAX_PARAGRAPH_NODES = 50_000
_MAX_DEPTH = 256  # fragments are read by recursion


@dataclass(slots=True)
class Unit:
    """A paragraph, or the part of one between two breaks: of `layer`, the items from `start` to `end`.

    `before` and `after` are white space that the fragment does not have. `places` maps keys of the fragment to indexes
    of items: the two tags of a wrap, or the first and last item of an atom.
    """

    layer: Sequence[Item]
    start: int
    end: int
    fragment: Fragment = ()
    before: str = ""
    after: str = ""
    places: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def items(self) -> Sequence[Item]:
        """The items of the unit."""
        return self.layer[self.start : self.end]


def find_units(items: Sequence[Item]) -> list[Unit]:
    """Return every unit with a letter in it, without the units inside `inner` items.

    Raises `DocumentTooComplex` if a paragraph has more than 50,000 elements, or nests them more than 256 deep.
    """
    units = []
    for start, end in _stretches(items):
        if end - start == 1:  # most are: a paragraph without markup
            if (unit := _plain_unit(items, start)) is not None:
                units.append(unit)
            continue
        if not any(item.kind is Kind.TEXT and any(map(str.isalpha, item.text)) for item in items[start:end]):
            continue
        unit = Unit(items, *_peeled(items, start, end))
        if unit.start < unit.end:
            unit.fragment = _build(unit)
            if has_words(unit.fragment):
                _strip(unit)
                units.append(unit)
    return units


def _plain_unit(items: Sequence[Item], index: int) -> Unit | None:
    """Return the unit of one item alone; None if it has no letter to translate."""
    item = items[index]
    if item.kind is not Kind.TEXT or not any(map(str.isalpha, item.text)):
        return None
    unit = Unit(items, index, index + 1, (item.text,))
    _strip(unit)
    return unit


def inner_items(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """Yield the lists of items inside items, in document order."""
    return (item.inner for item in items if item.inner)


def _stretches(items: Sequence[Item]) -> Iterator[tuple[int, int]]:
    """Yield the ranges without breaks in which every tag has its partner."""
    start = 0
    for index, item in enumerate([*items, Item(Kind.BREAK)]):
        if item.kind is Kind.BREAK:
            if start < index:
                for border in _unmatched(items, start, index):
                    yield start, border
                    start = border + 1
                yield start, index
            start = index + 1


def _unmatched(items: Sequence[Item], start: int, end: int) -> list[int]:
    opened: list[int] = []
    unopened: list[int] = []
    for index in range(start, end):
        if items[index].kind is Kind.OPEN:
            opened.append(index)
        elif items[index].kind is Kind.CLOSE:
            if opened:
                opened.pop()
            else:
                unopened.append(index)
    return sorted(unopened + opened)


def _peeled(items: Sequence[Item], start: int, end: int) -> tuple[int, int]:
    """Return the range without white space, pictures and tags around all of it at its ends."""
    if start == end:
        return start, end
    partners = _partners(items, start, end)
    origin = start
    # visible[i]: number of items with visible text among the first i of the range.
    visible = [0, *accumulate(bool(items[index].text.strip()) for index in range(start, end))]

    def is_textless(first: int, last: int) -> bool:
        return visible[last + 1 - origin] == visible[first - origin]

    while start < end:
        first, last = items[start].kind, items[end - 1].kind
        partner_of_first = partners[start] if first is Kind.OPEN else start
        partner_of_last = partners[end - 1] if last is Kind.CLOSE else end - 1
        if first is Kind.OPEN and partner_of_first == end - 1:
            start, end = start + 1, end - 1
        elif is_textless(start, partner_of_first):
            start = partner_of_first + 1
        elif is_textless(partner_of_last, end - 1):
            end = partner_of_last
        else:
            break
    return start, end


def _partners(items: Sequence[Item], start: int, end: int) -> dict[int, int]:
    opened: list[int] = []
    partners: dict[int, int] = {}
    for index in range(start, end):
        if items[index].kind is Kind.OPEN:
            opened.append(index)
        elif items[index].kind is Kind.CLOSE:
            partners[index] = opened.pop()
            partners[partners[index]] = index
    return partners


def _build(unit: Unit) -> Fragment:
    """Return the fragment of a unit. A wrap without a letter or a digit in it becomes an atom."""
    items = unit.layer
    texts = [item.text for item in unit.items]
    visible = "".join(texts)
    offsets = [0, *accumulate(map(len, texts))]
    stack: list[list[Inline]] = [[]]
    opened: list[tuple[int, int]] = []  # index of the tag, and the number of places before it
    num_nodes = 0
    for index in range(unit.start, unit.end):
        item = items[index]
        if item.kind is Kind.TEXT:
            stack[-1].append(item.text)
            continue
        num_nodes += item.kind in (Kind.ATOM, Kind.OPEN)
        if num_nodes > _MAX_PARAGRAPH_NODES:
            raise DocumentTooComplex(
                f"a paragraph may have {_MAX_PARAGRAPH_NODES} elements. The one that begins with "
                f"{visible.strip()[:40]!r} has more"
            )
        if item.kind is Kind.ATOM:
            stack[-1].append(_atom(unit, index, index, item.text))
        elif item.kind is Kind.OPEN:
            opened.append((index, len(unit.places)))
            stack.append([])
            if len(opened) > _MAX_DEPTH:
                raise DocumentTooComplex(
                    f"the formatting of a paragraph may be nested {_MAX_DEPTH} deep. The one that begins with "
                    f"{visible.strip()[:40]!r} has more"
                )
        elif item.kind is Kind.CLOSE:
            children, (first, num_places) = joined(stack.pop()), opened.pop()
            if _has_content(children):
                key = _new_place(unit, first, index)
                stack[-1].append(Wrap(key, children, items[first].is_soft, items[first].name))
            else:
                while len(unit.places) > num_places:  # the places inside the wrap are the last
                    unit.places.popitem()
                text = visible[offsets[first - unit.start] : offsets[index + 1 - unit.start]]
                stack[-1].append(_atom(unit, first, index, text.strip()))
    return joined(stack[0])


def _has_content(nodes: Fragment) -> bool:
    """Return whether there is a letter or a digit. Reads one level: every wrap of `_build` has one."""
    return any(isinstance(node, Wrap) or (isinstance(node, str) and any(map(str.isalnum, node))) for node in nodes)


def _atom(unit: Unit, first: int, last: int, text: str) -> Atom:
    return Atom(_new_place(unit, first, last), text)


def _new_place(unit: Unit, first: int, last: int) -> int:
    """Return a key for these items. Keys count from 1 without gaps, so the next key needs no search."""
    key = len(unit.places) + 1
    unit.places[key] = (first, last)
    return key


def _strip(unit: Unit) -> None:
    """Move white space from the ends of the fragment to `before` and `after`, as written there."""
    nodes = list(unit.fragment)
    if isinstance(nodes[0], str):
        text = nodes[0].lstrip()
        raw = unit.layer[unit.start].raw
        unit.before = _as_written(nodes[0][: len(nodes[0]) - len(text)], raw[: len(raw) - len(raw.lstrip())])
        nodes[0] = text
    if isinstance(nodes[-1], str):
        text = nodes[-1].rstrip()
        raw = unit.layer[unit.end - 1].raw
        unit.after = _as_written(nodes[-1][len(text) :], raw[len(raw.rstrip()) :])
        nodes[-1] = text
    unit.fragment = joined(nodes)


def _as_written(space: str, raw: str) -> str:
    return raw if raw and space == " " else space


# Items held at once, with their units and fragments: some 300 bytes each.
_WINDOW_ITEMS = 5000
# Pieces of markup and text, each some 5 us of work. Pages of real documents have one in 13 characters, short cues of
# subtitles one in 10.
_ITEMS = Density(50_000, 8)
# Elements in paragraphs, each some 40 us of work. Those around single letters have some 30 characters.
_ELEMENTS = Density(20_000, 40)

_DASHES = "–—"
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}

WriteText = Callable[[str], str]
# Returns the function that writes the texts of one unit. Called once a unit: what it finds there serves all texts.
TextWriter = Callable[[Unit], WriteText]
Finish = Callable[[Unit, str], str]
# Yields the fragments of units, as those of all of a document that is held, and returns a translation for each unit.
Translated = Callable[[Sequence[Unit], bool], Generator[list[Fragment], list[Fragment], Sequence[Fragment]]]


def escaped_texts(unit: Unit) -> WriteText:
    """Write texts as XML and HTML contain them: references of the source stay, and so do bare characters."""
    texts = [item for item in unit.items if item.kind is Kind.TEXT]
    written = dict(_ESCAPES)
    written.update((item.text, item.raw) for item in texts if len(item.text) == 1 and item.raw.startswith("&"))
    dashes = [item.raw for item in texts if item.raw.startswith("&") and item.text in _DASHES]
    if dashes and not any(dash in item.raw for item in texts for dash in _DASHES):
        written = dict.fromkeys(_DASHES, dashes[0]) | written  # languages differ in their length
    if any(">" in item.raw for item in texts):
        del written[">"]
    table = str.maketrans(written)
    if any("& " in item.raw for item in texts):
        return lambda text: fit_for_xml(text).translate(table).replace("&amp; ", "& ")
    return lambda text: fit_for_xml(text).translate(table)


def _unchanged(_: Unit, written: str) -> str:
    return written


def _one_by_one(units: Sequence[Unit], is_held: bool) -> Generator[list[Fragment], list[Fragment], Sequence[Fragment]]:
    return (yield as_window([unit.fragment for unit in units], is_held=is_held))


def rewritten(
    items: Iterable[Item],
    text_writer: TextWriter,
    finish: Finish = _unchanged,
    translated: Translated = _one_by_one,
    *,
    is_held: bool = False,
) -> Generator[list[Fragment], list[Fragment], str]:
    """Yield the fragments of these items, receive their translations, and return the items written with them.

    Reads `items` in windows, or at once if the document `is_held`. `text_writer` writes the strings of a fragment;
    `finish` receives the whole of a changed fragment with its markup; `translated` exchanges the units of a window for
    their translations. Raises `DocumentTooComplex`.
    """
    written: list[str] = []
    for window in _windows(items, sys.maxsize if is_held else _WINDOW_ITEMS):
        part = yield from _rewritten_window(window, text_writer, finish, translated, is_held)
        written.append(part)
    return "".join(written)


def _windows(items: Iterable[Item], num_items: int) -> Iterator[list[Item]]:
    """Yield lists of some `num_items` items that end at a break, so that no paragraph is divided.

    Raises `DocumentTooComplex` for more items or elements than the characters so far are worth.
    """
    window: list[Item] = []
    num_elements = num_characters = 0
    for number, item in enumerate(items, start=1):
        window.append(item)
        num_characters += len(item.raw)
        num_elements += item.kind is Kind.OPEN or item.kind is Kind.ATOM
        if number > _ITEMS.free:
            _ITEMS.check(number, num_characters, "pieces of markup and text")
        if num_elements > _ELEMENTS.free:
            _ELEMENTS.check(num_elements, num_characters, "elements in paragraphs")
        if len(window) >= num_items and item.kind is Kind.BREAK:
            yield window
            window = []
    yield window


def _rewritten_window(
    items: Sequence[Item], text_writer: TextWriter, finish: Finish, translated: Translated, is_held: bool
) -> Generator[list[Fragment], list[Fragment], str]:
    layers: list[tuple[Sequence[Item], list[Unit]]] = []
    _collect(items, layers)
    everything = [unit for _, units in layers for unit in units]

    remaining = iter((yield from translated(everything, is_held)) if everything else ())
    results = {id(layer): [(unit, next(remaining)) for unit in units] for layer, units in layers}

    def write_items(layer: Sequence[Item]) -> str:
        parts: list[str] = []
        position = 0
        for unit, result in results[id(layer)]:
            if result == unit.fragment:
                continue
            parts += map(raw, layer[position : unit.start])
            parts += (raw(item) for item in unit.items if item.kind is Kind.MARK)
            parts += [unit.before, finish(unit, _written(unit, result, text_writer(unit), raw)), unit.after]
            position = unit.end
        parts += map(raw, layer[position:])
        return "".join(parts)

    def raw(item: Item) -> str:
        return item.raw + write_items(item.inner) + item.after if item.inner else item.raw + item.after

    return write_items(items)


def _collect(items: Sequence[Item], layers: list[tuple[Sequence[Item], list[Unit]]]) -> None:
    layers.append((items, find_units(items)))
    for inner in inner_items(items):
        _collect(inner, layers)


def _written(unit: Unit, fragment: Fragment, write_text: WriteText, raw: Callable[[Item], str]) -> str:
    parts: list[str] = []
    for node in fragment:
        if isinstance(node, str):
            parts.append(write_text(node))
            continue
        first, last = unit.places[node.key]
        if isinstance(node, Wrap):
            parts += [raw(unit.layer[first]), _written(unit, node.children, write_text, raw), raw(unit.layer[last])]
        else:
            parts += (raw(item) for item in unit.layer[first : last + 1] if item.kind is not Kind.MARK)
    return "".join(parts)
