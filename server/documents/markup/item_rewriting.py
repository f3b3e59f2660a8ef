"""Rewriting of items: their fragments out, translations in, and the markup written again.

Markup that no translation touches is written as it was read, byte for byte.
"""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from server.documents.fragment import Fragment, Wrap, as_window
from server.documents.input.density import Density
from server.documents.input.safe_xml import fit_for_xml
from server.documents.markup.items import Item, Kind
from server.documents.markup.units import Unit, find_units, inner_items

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
