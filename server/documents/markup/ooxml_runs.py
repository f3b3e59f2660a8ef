"""Paragraphs of runs, as Office stores them: text leaves with a style each, changed inside an XML tree.

Neighbouring leaves of one style are one text, because Office divides runs wherever a person typed. The style with most
characters of a paragraph is the plain text; stretches of other styles are wraps around it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from server.documents.fragment import Atom, Fragment, Wrap, shape, texts_in
from server.documents.markup.items import Item, Kind
from server.documents.markup.ooxml_rebuilding import Piece, Rebuilding, set_text
from server.documents.markup.units import Unit, find_units


class Paragraph:
    """The units of one paragraph. `on_change` is called when its text has changed."""

    def __init__(self, pieces: Sequence[Piece], on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change
        self._pieces: list[Piece] = []
        self._items: list[Item] = []
        self._wrap_styles(_merged(pieces))
        self._units = find_units(self._items)

    @property
    def fragments(self) -> list[Fragment]:
        """The fragments to translate."""
        return [unit.fragment for unit in self._units]

    def replace(self, translations: Sequence[Fragment]) -> bool:
        """Replace the fragments by their translations; returns whether anything changed."""
        has_changed = False
        for unit, translation in zip(self._units, translations, strict=True):
            if translation == unit.fragment:
                continue
            has_changed = True
            if shape(translation) == shape(unit.fragment):
                self._fill(unit, translation)
            else:
                Rebuilding(self._pieces, unit).rebuild(translation)
        if has_changed and self._on_change is not None:
            self._on_change()
        return has_changed

    def _wrap_styles(self, pieces: Sequence[Piece]) -> None:
        lengths = Counter[str]()
        for piece in pieces:
            if piece.kind is Kind.TEXT and not piece.is_link:
                lengths[piece.style] += len(piece.text)
        main_style = max(lengths, key=lambda style: lengths[style], default="")
        for piece in pieces:
            if piece.kind is not Kind.TEXT:
                self._add(piece, Item(piece.kind, text=piece.text, is_soft=False))
            elif piece.style == main_style and not piece.is_link:
                self._add(piece, Item(Kind.TEXT, text=piece.text))
            else:
                self._add(Piece(Kind.OPEN), Item(Kind.OPEN, is_soft=not piece.is_link, name=piece.name))
                self._add(piece, Item(Kind.TEXT, text=piece.text))
                self._add(Piece(Kind.CLOSE), Item(Kind.CLOSE, is_soft=not piece.is_link))

    def _add(self, piece: Piece, item: Item) -> None:
        self._pieces.append(piece)
        self._items.append(item)

    def _fill(self, unit: Unit, translation: Fragment) -> None:
        """Write new texts into the existing leaves: a text goes into its first leaf."""
        in_atom = {
            index for key in _atom_keys(unit.fragment) for index in range(unit.places[key][0], unit.places[key][1] + 1)
        }
        places = [
            index
            for index in range(unit.start, unit.end)
            if self._items[index].kind is Kind.TEXT and self._items[index].text and index not in in_atom
        ]
        texts = list(texts_in(translation))
        texts[0] = unit.before + texts[0] if isinstance(unit.fragment[0], str) else texts[0]
        texts[-1] = texts[-1] + unit.after if isinstance(unit.fragment[-1], str) else texts[-1]
        for index, text in zip(places, texts, strict=True):
            if text != self._items[index].text:
                first, *others = self._pieces[index].elements
                set_text(first, text)
                for leaf in others:
                    set_text(leaf, "")


def _merged(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces with neighbouring texts of one style as one piece."""
    merged: list[Piece] = []
    for (kind, _, _), group in groupby(pieces, key=lambda piece: (piece.kind, piece.style, piece.is_link)):
        first, *others = group
        if kind is not Kind.TEXT or not others:
            merged += [first, *others]
        else:
            elements = [leaf for piece in (first, *others) for leaf in piece.elements]
            text = "".join(piece.text for piece in (first, *others))
            merged.append(replace(first, elements=elements, text=text))
    return merged


def _atom_keys(fragment: Fragment) -> list[int]:
    keys: list[int] = []
    for node in fragment:
        if isinstance(node, Atom):
            keys.append(node.key)
        elif isinstance(node, Wrap):
            keys += _atom_keys(node.children)
    return keys
