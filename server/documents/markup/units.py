"""Units of translation in a list of items: paragraphs, without the markup around them.

Every step takes time linear in the number of items, whatever the markup is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from server.documents.fragment import Atom, Fragment, Inline, Wrap, has_words, joined
from server.documents.markup.items import Item, Kind
from server.interface.errors import DocumentTooComplex

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
