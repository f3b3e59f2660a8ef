"""Paragraphs of runs, as Office has them: text leaves with a style each, changed inside an XML tree.

Neighbouring leaves of one style are one text, for Office cuts runs wherever somebody typed. The style that has most
characters of a paragraph is the text itself; stretches of other styles are wraps around it.
"""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from lxml import etree

from server.documents.fragment import Atom, Fragment, Wrap, shape, texts_in
from server.documents.input.safe_xml import fit_for_xml
from server.documents.markup.items import Item, Kind, Unit, find_units

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass(slots=True)
class Piece:
    """One item of a paragraph, and the elements it is: of a text its leaves, of an atom or a wrap all of it.

    A leaf is the element that holds text (w:t, a:t); its parent is its run. `inside` of a wrap holds its runs.
    """

    kind: Kind
    elements: list[etree._Element] = field(default_factory=list)
    text: str = ""
    style: str = ""
    is_link: bool = False  # by its style, as in PowerPoint
    inside: etree._Element | None = None


class Paragraph:
    """Everything to translate in one paragraph."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces: list[Piece] = []
        self._items: list[Item] = []
        self._wrap_styles(_merged(pieces))
        self._units = find_units(self._items)

    @property
    def fragments(self) -> list[Fragment]:
        """What is to be translated."""
        return [unit.fragment for unit in self._units]

    def replace(self, translations: Sequence[Fragment]) -> bool:
        """Put translations in the places of the fragments; whether anything changed."""
        has_changed = False
        for unit, translation in zip(self._units, translations, strict=True):
            if translation == unit.fragment:
                continue
            has_changed = True
            if shape(translation) == shape(unit.fragment):
                self._fill(unit, translation)
            else:
                _Rebuilding(self._pieces, unit).rebuild(translation)
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
                self._add(Piece(Kind.OPEN), Item(Kind.OPEN, is_soft=not piece.is_link))
                self._add(piece, Item(Kind.TEXT, text=piece.text))
                self._add(Piece(Kind.CLOSE), Item(Kind.CLOSE, is_soft=not piece.is_link))

    def _add(self, piece: Piece, item: Item) -> None:
        self._pieces.append(piece)
        self._items.append(item)

    def _fill(self, unit: Unit, translation: Fragment) -> None:
        """New texts in the old places: a text goes into its first leaf."""
        atoms = [unit.places[key] for key in _atom_keys(unit.fragment)]
        places = [
            index
            for index in range(unit.start, unit.end)
            if self._items[index].kind is Kind.TEXT
            and self._items[index].text
            and not any(first <= index <= last for first, last in atoms)
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


def set_text(leaf: etree._Element, text: str) -> None:
    """Give a leaf its text, with the white space at its ends."""
    leaf.text = fit_for_xml(text)
    # Only Word's leaves lose white space otherwise; PowerPoint's do not know the attribute.
    if text != text.strip() and not leaf.tag.startswith("{http://schemas.openxmlformats.org/drawingml"):
        leaf.set(_SPACE, "preserve")


def _merged(pieces: Sequence[Piece]) -> list[Piece]:
    merged: list[Piece] = []
    for piece in pieces:
        last = merged[-1] if merged else None
        if piece.kind is not Kind.TEXT or last is None or last.kind is not Kind.TEXT or last.style != piece.style:
            merged.append(piece)
        else:
            merged[-1] = Piece(
                Kind.TEXT, last.elements + piece.elements, last.text + piece.text, last.style, last.is_link
            )
    return merged


def _atom_keys(fragment: Fragment) -> list[int]:
    keys: list[int] = []
    for node in fragment:
        if isinstance(node, Atom):
            keys.append(node.key)
        elif isinstance(node, Wrap):
            keys += _atom_keys(node.children)
    return keys


class _Rebuilding:
    """One unit whose parts come in another order than before, or in other numbers: its runs are made anew."""

    def __init__(self, pieces: Sequence[Piece], unit: Unit) -> None:
        self._pieces = pieces
        self._unit = unit

    def rebuild(self, translation: Fragment) -> None:
        """Write the translation in place of the unit's runs, with copies of the runs that were there."""
        pieces = self._pieces[self._unit.start : self._unit.end]
        leaves = [leaf for piece in pieces if piece.kind is Kind.TEXT for leaf in piece.elements]
        for element in [*leaves, *(atom for piece in pieces if piece.kind is Kind.ATOM for atom in piece.elements)]:
            _isolate(element)
        plain = next((piece for piece in pieces if piece.kind is Kind.TEXT), None)
        if plain is None:
            return
        pattern = deepcopy(_run_of(self._plain_piece(pieces) or plain))
        tops = self._tops()
        parent = tops[0].getparent()
        assert parent is not None
        index = parent.index(tops[0])
        new = self._elements(translation, pattern)
        for top in tops:
            if top.getparent() is parent:
                _remove(top)
        nodes = list(translation)
        if nodes and self._unit.before:
            new.insert(0, _with_text(pattern, self._unit.before))
        if nodes and self._unit.after:
            new.append(_with_text(pattern, self._unit.after))
        for offset, element in enumerate(new):
            parent.insert(index + offset, element)

    def _plain_piece(self, pieces: Sequence[Piece]) -> Piece | None:
        depth = 0
        for piece in pieces:
            depth += (piece.kind is Kind.OPEN) - (piece.kind is Kind.CLOSE)
            if piece.kind is Kind.TEXT and not depth:
                return piece
        return None

    def _tops(self) -> list[etree._Element]:
        """The unit's elements on the level of the paragraph (or of the link that all of the unit is in)."""
        tops: list[etree._Element] = []
        depth = 0
        for piece in self._pieces[self._unit.start : self._unit.end]:
            is_container = bool(piece.elements) and piece.kind in (Kind.OPEN, Kind.CLOSE)
            if piece.kind is Kind.CLOSE and is_container:
                depth -= 1
            elif depth == 0:
                if piece.kind in (Kind.TEXT, Kind.ATOM):
                    tops += [_top(element) for element in piece.elements]
                elif is_container:
                    tops += piece.elements
            if piece.kind is Kind.OPEN and is_container:
                depth += 1
        return list(dict.fromkeys(tops))

    def _elements(self, fragment: Fragment, pattern: etree._Element) -> list[etree._Element]:
        elements: list[etree._Element] = []
        for node in fragment:
            if isinstance(node, str):
                elements.append(_with_text(pattern, node))
                continue
            first, last = self._unit.places[node.key]
            pieces = self._pieces[first : last + 1]
            if isinstance(node, Atom):
                container = pieces[0].elements if pieces[0].kind is Kind.OPEN else []
                elements += container or list(
                    dict.fromkeys(_top(element) for piece in pieces for element in piece.elements)
                )
            elif pieces[0].elements:
                elements.append(self._refilled_container(pieces, node.children, pattern))
            else:
                styled = next(piece for piece in pieces if piece.kind is Kind.TEXT)
                elements += self._elements(node.children, deepcopy(_run_of(styled)))
        return elements

    def _refilled_container(
        self, pieces: Sequence[Piece], children: Fragment, pattern: etree._Element
    ) -> etree._Element:
        outer, inside = pieces[0].elements[0], pieces[0].inside
        assert inside is not None
        own = next((piece for piece in pieces if piece.kind is Kind.TEXT), None)
        new = self._elements(children, pattern if own is None else deepcopy(_run_of(own)))
        for run in list(inside):
            if any(leaf.getparent() is run for piece in pieces if piece.kind is Kind.TEXT for leaf in piece.elements):
                _remove(run)
        for element in new:
            inside.append(element)
        return outer


def _run_of(piece: Piece) -> etree._Element:
    run = piece.elements[0].getparent()
    assert run is not None
    return run


def _top(element: etree._Element) -> etree._Element:
    """The run of a leaf; elements that are no part of a run stand for themselves."""
    parent = element.getparent()
    return parent if parent is not None and _is_run(parent) else element


def _is_run(element: etree._Element) -> bool:
    return element.tag.endswith("}r")


def _is_properties(element: etree._Element) -> bool:
    return element.tag.endswith("}rPr")


def _isolate(element: etree._Element) -> None:
    """Give the element a run of its own, if it shares one."""
    run = element.getparent()
    if run is None or not _is_run(run):
        return
    content = [child for child in run.iterchildren("*") if not _is_properties(child)]
    position = run
    for child in content[1:]:
        single = deepcopy(run)
        for copied in single.iterchildren("*"):
            if not _is_properties(copied):
                single.remove(copied)
        single.append(child)
        position.addnext(single)
        position = single


def _with_text(pattern: etree._Element, text: str) -> etree._Element:
    run = deepcopy(pattern)
    leaf = next(child for child in run.iterchildren("*") if child.tag.endswith("}t"))
    set_text(leaf, text)
    return run


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
