"""Pieces of an Office paragraph, and the rebuilding of its runs when a translation orders them differently."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from lxml import etree

from server.documents.fragment import Atom, Fragment
from server.documents.input.safe_xml import fit_for_xml
from server.documents.markup.items import Kind
from server.documents.markup.units import Unit

_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass(slots=True)
class Piece:
    """One item of a paragraph with its elements: the leaves of a text, or the whole of an atom or a wrap.

    A leaf is the element that holds text (w:t, a:t); its parent is its run. `inside` of a wrap holds its runs.
    """

    kind: Kind
    elements: list[etree._Element] = field(default_factory=list)
    text: str = ""
    style: str = ""
    is_link: bool = False  # a link by its style, as in PowerPoint
    inside: etree._Element | None = None
    name: str = ""  # sup or sub


def set_text(leaf: etree._Element, text: str) -> None:
    """Set the text of a leaf, with the white space at its ends."""
    leaf.text = fit_for_xml(text)
    # Only Word's leaves lose white space otherwise; PowerPoint's have no such attribute.
    if text != text.strip() and not leaf.tag.startswith("{http://schemas.openxmlformats.org/drawingml"):
        leaf.set(_SPACE, "preserve")


class Rebuilding:
    """Replacement of a unit's runs by new ones, for translations whose parts changed order or number."""

    def __init__(self, pieces: Sequence[Piece], unit: Unit) -> None:
        self._pieces = pieces
        self._unit = unit

    def rebuild(self, translation: Fragment) -> None:
        """Write the translation in place of the unit's runs, with copies of these runs."""
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
        new = self._elements(translation, pattern)
        if translation and self._unit.before:
            new.insert(0, _with_text(pattern, self._unit.before))
        if translation and self._unit.after:
            new.append(_with_text(pattern, self._unit.after))
        index = parent.index(tops[0])
        for top in tops:
            if top.getparent() is parent:
                _remove(top)
        _insert(parent, index, new)

    def _plain_piece(self, pieces: Sequence[Piece]) -> Piece | None:
        depth = 0
        for piece in pieces:
            depth += (piece.kind is Kind.OPEN) - (piece.kind is Kind.CLOSE)
            if piece.kind is Kind.TEXT and not depth:
                return piece
        return None

    def _tops(self) -> list[etree._Element]:
        """Return the unit's elements on the level of the paragraph, or of the link around the whole unit."""
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
        runs = dict.fromkeys(
            _run_of(piece, leaf) for piece in pieces if piece.kind is Kind.TEXT for leaf in piece.elements
        )
        for run in runs:
            if run.getparent() is inside:
                _remove(run)
        for element in new:
            inside.append(element)
        return outer


def _run_of(piece: Piece, leaf: etree._Element | None = None) -> etree._Element:
    run = (piece.elements[0] if leaf is None else leaf).getparent()
    assert run is not None
    return run


def _top(element: etree._Element) -> etree._Element:
    """Return the run of a leaf; an element outside of runs is returned itself."""
    parent = element.getparent()
    return parent if parent is not None and _is_run(parent) else element


def _is_run(element: etree._Element) -> bool:
    return element.tag.endswith("}r")


def _is_properties(element: etree._Element) -> bool:
    return element.tag.endswith("}rPr")


def _isolate(element: etree._Element) -> None:
    """Move the element into a run of its own if it shares one, and its neighbours in the run likewise."""
    run = element.getparent()
    if run is None or not _is_run(run):
        return
    _, *others = [child for child in run.iterchildren("*") if not _is_properties(child)]
    if not others:
        return
    empty = deepcopy(run)  # once: a copy for each child would take quadratic time
    for copied in list(empty.iterchildren("*")):
        if not _is_properties(copied):
            empty.remove(copied)
    position = run
    for child in others:
        single = deepcopy(empty)
        single.append(child)
        position.addnext(single)
        position = single


def _insert(parent: etree._Element, index: int, elements: Sequence[etree._Element]) -> None:
    """Insert the elements at `index`: one search for the position, whatever their number."""
    previous: etree._Element | None = None
    for element in elements:
        if previous is None:
            parent.insert(index, element)
        else:
            tail, previous.tail = previous.tail, None  # `addnext` would put the element in front of it
            previous.addnext(element)
            previous.tail = tail
        previous = element


def _with_text(pattern: etree._Element, text: str) -> etree._Element:
    run = deepcopy(pattern)
    leaf = next(child for child in run.iterchildren("*") if child.tag.endswith("}t"))
    set_text(leaf, text)
    return run


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
