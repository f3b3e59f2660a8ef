"""Rewriting of items: their fragments out, translations in, and the markup written again.

Markup that no translation touches is written as it was read, byte for byte.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from server.documents.fragment import Fragment, Wrap
from server.documents.markup.items import Item, Kind, write_text
from server.documents.markup.units import Unit, find_units, inner_items
from server.interface.errors import DocumentTooComplex

# Items held at once, with their units and fragments: some 300 bytes each.
_WINDOW_ITEMS = 5000
# Elements in paragraphs, each some 40 us of work. Those around single letters have some 30 characters.
_FREE_ELEMENTS, _CHARACTERS_PER_ELEMENT = 20_000, 40

WriteText = Callable[[str], str]
# Returns the function that writes the texts of one unit. Called once a unit: what it finds there serves all texts.
TextWriter = Callable[[Unit], WriteText]
Finish = Callable[[Unit, str], str]


def escaped_texts(_: Unit) -> WriteText:
    """Write texts as XML and HTML contain them."""
    return write_text


def _unchanged(_: Unit, written: str) -> str:
    return written


def rewritten(
    items: Iterable[Item], text_writer: TextWriter, finish: Finish = _unchanged
) -> Generator[list[Fragment], list[Fragment], str]:
    """Yield the fragments of these items, receive their translations, and return the items written with them.

    Reads `items` in windows. `text_writer` writes the strings of a fragment; `finish` receives the whole of a changed
    fragment with its markup. Raises `DocumentTooComplex`.
    """
    written: list[str] = []
    for window in _windows(items):
        part = yield from _rewritten_window(window, text_writer, finish)
        written.append(part)
    return "".join(written)


def _windows(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield lists of items that end at a break, so that no paragraph is divided.

    Raises `DocumentTooComplex` for more elements than the characters of the file are worth.
    """
    window: list[Item] = []
    num_elements = num_characters = 0
    for item in items:
        window.append(item)
        num_characters += len(item.raw)
        num_elements += item.kind is Kind.OPEN or item.kind is Kind.ATOM
        if num_elements > _FREE_ELEMENTS + num_characters // _CHARACTERS_PER_ELEMENT:
            raise DocumentTooComplex(
                f"a document may have {_FREE_ELEMENTS} elements in paragraphs, and one more for each "
                f"{_CHARACTERS_PER_ELEMENT} characters. It has {num_elements} in the first {num_characters} characters"
            )
        if len(window) >= _WINDOW_ITEMS and item.kind is Kind.BREAK:
            yield window
            window = []
    yield window


def _rewritten_window(
    items: Sequence[Item], text_writer: TextWriter, finish: Finish
) -> Generator[list[Fragment], list[Fragment], str]:
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
