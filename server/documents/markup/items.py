"""Mark-up as a flat list of items, paragraphs found in it, and the list written again with translations in them.

What no translation touches is written as it was read, byte for byte.
"""

import html
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from server.documents.fragment import Atom, Fragment, Inline, Wrap, has_words, joined
from server.documents.input import safe_xml

Attributes = Mapping[str, str]


class Role(Enum):
    """What an element is to the text around it."""

    BLOCK = auto()  # a paragraph, or what holds some: ends sentences
    VERBATIM = auto()  # a block whose white space is to be kept
    STRUCTURE = auto()  # holds blocks, and no text of its own
    BREAK = auto()  # ends sentences, and holds nothing to translate
    SOFT = auto()  # formatting
    HARD = auto()  # a link and the like
    ATOM = auto()  # stands in a sentence, and is not translated
    ISLAND = auto()  # an atom with paragraphs of its own in it, such as a footnote
    MARK = auto()  # stands in a sentence and is no part of it
    SPACE = auto()  # is read as a space


def write_text(_: object, text: str) -> str:
    """A translated text as XML and HTML hold it."""
    return html.escape(safe_xml.fit_for_xml(text), quote=False)


class Kind(Enum):
    """What an item is to the text around it."""

    TEXT = auto()
    OPEN = auto()  # of a wrap
    CLOSE = auto()
    ATOM = auto()
    BREAK = auto()  # no sentence goes across it: the tag of a block, a line break, a tab
    MARK = auto()  # stands somewhere in the text and is no part of it: a comment, a bookmark


@dataclass(frozen=True, slots=True)
class Item:
    """`raw` is how it is written, `text` what a reader sees. Paragraphs inside an atom or a break are in `inner`."""

    kind: Kind
    raw: str = ""
    text: str = ""
    is_soft: bool = True
    inner: tuple["Item", ...] = ()
    after: str = ""  # written behind `inner`


@dataclass(slots=True)
class Unit:
    """A paragraph, or what of it has no break in it: of `layer`, the items from `start` to `end`.

    `before` and `after` are whitespace that the fragment does not have. `places` leads from keys of the fragment to
    indexes of items: of the two tags of a wrap, or of the items of an atom, first and last.
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
        """The items it is made of."""
        return self.layer[self.start : self.end]


def find_units(items: Sequence[Item]) -> list[Unit]:
    """Everything to translate in these items, without that in their `inner` ones."""
    units = []
    for start, end in _stretches(items):
        unit = Unit(items, *_peeled(items, start, end))
        if unit.start < unit.end:
            unit.fragment = _build(unit)
            if has_words(unit.fragment):
                _strip(unit)
                units.append(unit)
    return units


def inner_items(items: Sequence[Item]) -> Iterator[tuple[Item, ...]]:
    """The lists of items inside items, in the order of the document."""
    return (item.inner for item in items if item.inner)


WriteText = Callable[[Unit, str], str]


def _unchanged(_: Unit, written: str) -> str:
    return written


def rewritten(
    items: Sequence[Item], write_text: WriteText, finish: WriteText = _unchanged
) -> Generator[list[Fragment], list[Fragment], str]:
    """Yields all fragments of these items, is sent their translations, and returns the items written with them.

    `write_text` writes each string of a fragment, `finish` gets the whole of a changed one with its mark-up.
    """
    layers: list[tuple[Sequence[Item], list[Unit]]] = []
    _collect(items, layers)
    fragments = [unit.fragment for _, units in layers for unit in units]

    remaining = iter((yield fragments) if fragments else ())
    results = {id(layer): [(unit, next(remaining)) for unit in units] for layer, units in layers}

    def write_items(layer: Sequence[Item]) -> str:
        parts: list[str] = []
        position = 0
        for unit, result in results[id(layer)]:
            if result == unit.fragment:
                continue
            parts += map(raw, layer[position : unit.start])
            parts += (raw(item) for item in unit.items if item.kind is Kind.MARK)
            parts += [unit.before, finish(unit, _written(unit, result, write_text, raw)), unit.after]
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


def _stretches(items: Sequence[Item]) -> Iterator[tuple[int, int]]:
    """Ranges without breaks in which every tag has its partner."""
    start = 0
    for index, item in enumerate([*items, Item(Kind.BREAK)]):
        if item.kind is Kind.BREAK:
            borders = _unmatched(items, start, index)
            for border in [*borders, index]:
                yield start, border
                start = border + 1


def _unmatched(items: Sequence[Item], start: int, end: int) -> list[int]:
    opened: list[int] = []
    lonely: list[int] = []
    for index in range(start, end):
        if items[index].kind is Kind.OPEN:
            opened.append(index)
        elif items[index].kind is Kind.CLOSE:
            if opened:
                opened.pop()
            else:
                lonely.append(index)
    return sorted(lonely + opened)


def _peeled(items: Sequence[Item], start: int, end: int) -> tuple[int, int]:
    """The range without what stands at its ends and is no text: white space, pictures, tags around all of it."""
    partners = _partners(items, start, end)
    while start < end:
        first, last = items[start], items[end - 1]
        if first.kind is Kind.OPEN and partners[start] == end - 1:
            start, end = start + 1, end - 1
        elif (skipped := _end_of_textless(items, partners, start)) > start:
            start = skipped
        elif last.kind is Kind.CLOSE and _end_of_textless(items, partners, partners[end - 1]) == end:
            end = partners[end - 1]
        elif last.kind is not Kind.CLOSE and _end_of_textless(items, partners, end - 1) == end:
            end -= 1
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


def _end_of_textless(items: Sequence[Item], partners: dict[int, int], start: int) -> int:
    """Behind the node that begins here if nobody reads anything in it, else `start`."""
    item = items[start]
    end = partners[start] + 1 if item.kind is Kind.OPEN else start + 1
    return start if any(each.text.strip() for each in items[start:end]) or item.kind is Kind.CLOSE else end


def _build(unit: Unit) -> Fragment:
    """The fragment of a range; what it wraps without a letter in it becomes an atom."""
    items = unit.layer
    stack: list[list[Inline]] = [[]]
    opened: list[tuple[int, int]] = []  # index of the tag, and how many places there were before it
    for index in range(unit.start, unit.end):
        item = items[index]
        if item.kind is Kind.TEXT:
            stack[-1].append(item.text)
        elif item.kind is Kind.ATOM:
            stack[-1].append(_atom(unit, index, index, item.text))
        elif item.kind is Kind.OPEN:
            opened.append((index, len(unit.places)))
            stack.append([])
        elif item.kind is Kind.CLOSE:
            children, (first, num_places) = joined(stack.pop()), opened.pop()
            if has_words(children):
                key = _new_place(unit, first, index)
                stack[-1].append(Wrap(key, children, items[first].is_soft))
            else:
                while len(unit.places) > num_places:  # those of what is inside are the last
                    unit.places.popitem()
                visible = "".join(each.text for each in items[first : index + 1])
                stack[-1].append(_atom(unit, first, index, visible.strip()))
    return joined(stack[0])


def _atom(unit: Unit, first: int, last: int, text: str) -> Atom:
    return Atom(_new_place(unit, first, last), text)


def _new_place(unit: Unit, first: int, last: int) -> int:
    """A key for these items. Keys count from 1 without gaps, so that the next one is known without a search."""
    key = len(unit.places) + 1
    unit.places[key] = (first, last)
    return key


def _strip(unit: Unit) -> None:
    """Move white space from the ends of the fragment to `before` and `after`, as it was written there."""
    nodes = list(unit.fragment)
    if isinstance(nodes[0], str):
        text = nodes[0].lstrip()
        raw = unit.items[0].raw
        unit.before = _as_written(nodes[0][: len(nodes[0]) - len(text)], raw[: len(raw) - len(raw.lstrip())])
        nodes[0] = text
    if isinstance(nodes[-1], str):
        text = nodes[-1].rstrip()
        raw = unit.items[-1].raw
        unit.after = _as_written(nodes[-1][len(text) :], raw[len(raw.rstrip()) :])
        nodes[-1] = text
    unit.fragment = joined(nodes)


def _as_written(space: str, raw: str) -> str:
    return raw if raw and space == " " else space


def _written(unit: Unit, fragment: Fragment, write_text: WriteText, raw: Callable[[Item], str]) -> str:
    parts: list[str] = []
    for node in fragment:
        if isinstance(node, str):
            parts.append(write_text(unit, node))
            continue
        first, last = unit.places[node.key]
        if isinstance(node, Wrap):
            parts += [raw(unit.layer[first]), _written(unit, node.children, write_text, raw), raw(unit.layer[last])]
        else:
            parts += (raw(item) for item in unit.layer[first : last + 1] if item.kind is not Kind.MARK)
    return "".join(parts)
