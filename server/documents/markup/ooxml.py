"""Office documents in XML: packages, the runs of their paragraphs, and runs rebuilt in the order of a translation."""

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import BinaryIO

from lxml import etree

from server.documents.fragment import Atom, Fragment, Rewrite, Wrap, next_window, shape, texts_in
from server.documents.input import safe_xml
from server.documents.input.archive import Archive, opened
from server.documents.input.limits import FileLimits
from server.documents.input.safe_xml import fit_for_xml
from server.documents.markup.items import Item, Kind, Unit, find_units
from server.interface.errors import DocumentTooComplex, InvalidDocument

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


_CONTENT_TYPES = "[Content_Types].xml"
_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
_WINDOW_PARAGRAPHS = 1000  # held at once, with their fragments
_STRICT = "{http://purl.oclc.org/ooxml/"  # the beginning of the names of ISO/IEC 29500-1
_MAX_TREE_TAGS = 600_000  # of a part that is parsed: some 200 bytes of memory each

# Yields the paragraphs of a part in document order. Receives control again when earlier ones may have been rewritten.
FindParagraphs = Callable[[etree._ElementTree], Iterator[Paragraph]]


def rewrite_package(
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    main_types: frozenset[str],
    text_types: frozenset[str],
    find_paragraphs: FindParagraphs,
    text_tag: re.Pattern[bytes],
) -> Rewrite:
    """Rewrite the parts of `text_types` and `main_types`, and copy the others. One of `main_types` must be there.

    A part in which `text_tag` finds no paragraph is copied unread: most sheets of a workbook have numbers and formulas,
    and may be far larger than its texts.
    """

    def rewrite_part(content: bytes, name: str, is_held: bool) -> Generator[list[Fragment], list[Fragment], bytes]:
        if b"\0" not in content and text_tag.search(content) is None:  # NULs: UTF-16
            safe_xml.check(content, name)
            return content
        if (num_tags := content.count(b"<")) > _MAX_TREE_TAGS:
            raise DocumentTooComplex(f"{name} may have {_MAX_TREE_TAGS} tags. Given: {num_tags}")
        tree = safe_xml.parse(content, name)
        if tree.getroot().tag.startswith(_STRICT):
            raise InvalidDocument(f"{name} is Strict Open XML, which is not supported; save the document as not strict")
        paragraphs = find_paragraphs(tree)
        has_changed = False
        while window := next_window(paragraphs, _WINDOW_PARAGRAPHS, is_held=is_held):
            fragments = [fragment for paragraph in window for fragment in paragraph.fragments]
            remaining = iter((yield fragments) if fragments else ())
            for paragraph in window:
                has_changed |= paragraph.replace([next(remaining) for _ in paragraph.fragments])
        return safe_xml.serialized(tree, content) if has_changed else content

    with opened(source, limits) as archive:
        parts = dict(part_types(archive))
        if not main_types & set(parts.values()):
            raise InvalidDocument("the archive contains no document of the format that its name indicates")
        wanted = main_types | text_types
        yield from archive.rewrite(sink, {name: rewrite_part for name, kind in parts.items() if kind in wanted})


def tag_pattern(*names: str) -> re.Pattern[bytes]:
    """Return a pattern for the start tags of these elements, with any prefix."""
    return re.compile(rf"<(?:[\w.-]+:)?(?:{'|'.join(names)})[\s/>]".encode())


def part_types(archive: Archive) -> Iterator[tuple[str, str]]:
    """Yield the name and the content type of each part: its own type, or else that of its extension.

    Both are compared without regard to case (ISO/IEC 29500-2).
    """
    types = safe_xml.parse(archive.read(_CONTENT_TYPES), _CONTENT_TYPES)
    of_part = {
        each.get("PartName", "").lower(): each.get("ContentType", "") for each in types.iter(_TYPES + "Override")
    }
    of_extension = {
        each.get("Extension", "").lower(): each.get("ContentType", "") for each in types.iter(_TYPES + "Default")
    }
    for name in archive.names:
        extension = name.rpartition(".")[2].lower()
        yield name, of_part.get(f"/{name}".lower()) or of_extension.get(extension, "")


def described(element: etree._Element) -> str:
    """Return a text that is equal for elements of equal meaning, whatever their prefixes and attribute order."""
    return repr([(str(each.tag), sorted(each.attrib.items()), len(each), each.text) for each in element.iter()])
