"""Word documents: body, tables, headers, footers, notes, comments, text boxes, diagrams and titles of charts."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import BinaryIO

from lxml import etree

from server.documents.formats.pptx import DRAWING_TYPES, drawing_paragraphs
from server.documents.fragment import Rewrite
from server.documents.input.limits import FileLimits
from server.documents.markup.items import Kind
from server.documents.markup.ooxml import Paragraph, Piece, described, rewrite_package, tag_pattern

_TYPES = "application/vnd.openxmlformats-officedocument.wordprocessingml."
_MACRO_TYPES = "application/vnd.ms-word."
_MAIN_TYPES = frozenset(
    (f"{_TYPES}document.main+xml", f"{_TYPES}template.main+xml", f"{_MACRO_TYPES}document.macroEnabled.main+xml")
)
_TEXT_TYPES = DRAWING_TYPES | {
    f"{_TYPES}{name}+xml" for name in ("header", "footer", "footnotes", "endnotes", "comments")
}

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
# Elements around runs. Text inserted under "track changes" is text; deleted text is not.
_CONTAINERS = frozenset(_W + name for name in ("hyperlink", "ins", "moveTo", "smartTag", "customXml", "dir", "bdo"))
_INVISIBLE = frozenset(
    _W + name
    for name in [
        "pPr",
        "rPr",
        "bookmarkStart",
        "bookmarkEnd",
        "proofErr",
        "commentRangeStart",
        "commentRangeEnd",
        "commentReference",
        "permStart",
        "permEnd",
        "lastRenderedPageBreak",
        "softHyphen",
        "del",
        "moveFrom",
        "moveFromRangeStart",
        "moveFromRangeEnd",
        "moveToRangeStart",
        "moveToRangeEnd",
        "annotationRef",
        "delText",
        "delInstrText",
    ]
)
_BREAKS = frozenset(_W + name for name in ("tab", "br", "cr", "ptab"))
# Properties of a style that do not change how text looks.
_NO_STYLE = frozenset(_W + name for name in ("lang", "noProof", "rPrChange", "webHidden"))
_NAMES = {"superscript": "sup", "subscript": "sub"}
_LINK_FIELDS = ("HYPERLINK", "TOC")  # fields whose result is text of the document
_TEXT_TAG = tag_pattern("p")


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Rewrite every paragraph; results of fields (page numbers, references), formulas and pictures stay."""
    yield from rewrite_package(source, sink, limits, _MAIN_TYPES, _TEXT_TYPES, _paragraphs, _TEXT_TAG)


def _paragraphs(tree: etree._ElementTree) -> Iterator[Paragraph]:
    for paragraph in list(tree.iter(_W + "p")):  # the tree changes in between
        controls = list(paragraph.iterancestors(_W + "sdt"))
        if any(map(_is_choice, controls)):
            continue
        if paragraph.find(f".//{_W}ruby") is None or paragraph.find(f".//{_W}p") is not None:
            controls += paragraph.iter(_W + "sdt")
            yield Paragraph(_Reader().read(paragraph), partial(_unbind, controls) if controls else None)
            continue
        # A reading belongs to its text: a paragraph that changes is replaced by a copy without readings.
        plain = deepcopy(paragraph)
        for ruby in list(plain.iter(_W + "ruby")):
            _replace_by_base(ruby)
        yield Paragraph(_Reader().read(plain), partial(_replace, paragraph, plain))
    yield from drawing_paragraphs(tree)


def _is_choice(control: etree._Element) -> bool:
    """Return whether the text of a content control is one of a list."""
    return control.find(f"{_W}sdtPr/{_W}dropDownList") is not None


def _unbind(controls: Sequence[etree._Element]) -> None:
    """Separate content controls from their data, with which Word would replace their translations."""
    for control in controls:
        if (binding := control.find(f"{_W}sdtPr/{_W}dataBinding")) is not None and not _is_choice(control):
            _remove(binding)


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    assert parent is not None
    parent.remove(element)


def _replace_by_base(ruby: etree._Element) -> None:
    """Put the runs of a base in place of the run of its ruby, which has nothing else."""
    run = ruby.getparent()
    if run is None or run.tag != _W + "r" or run.getparent() is None:
        return
    for base in reversed(ruby.findall(f"{_W}rubyBase/{_W}r")):
        run.addnext(base)
    run.remove(ruby)


def _replace(old: etree._Element, new: etree._Element) -> None:
    parent = old.getparent()
    assert parent is not None
    new.tail = old.tail
    parent.replace(old, new)


class _Reader:
    """Reader of one paragraph. Paragraphs inside it (text boxes) are atoms here, and are read separately."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._field: Piece | None = None  # the field that is open here
        self._field_depth = 0
        self._instruction = ""

    def read(self, paragraph: etree._Element) -> list[Piece]:
        """Return all pieces in order."""
        self._read_children(paragraph)
        if self._field is not None:  # the field continues in the next paragraph
            self._pieces.append(Piece(Kind.BREAK))
        return self._pieces

    def _read_children(self, parent: etree._Element) -> None:
        for child in parent.iterchildren("*"):
            if child.tag in _INVISIBLE:
                continue
            if child.tag == _W + "r":
                self._read_run(child)
            elif self._field is not None:
                self._field.elements.append(child)
            elif child.tag in _CONTAINERS:
                self._read_container(child, child)
            elif child.tag == _W + "sdt" and _is_choice(child):
                self._pieces.append(Piece(Kind.ATOM, [child], _visible_text(child)))
            elif child.tag == _W + "sdt" and (content := child.find(_W + "sdtContent")) is not None:
                self._read_container(child, content)
            else:
                self._pieces.append(Piece(Kind.ATOM, [child], _visible_text(child)))

    def _read_container(self, outer: etree._Element, inside: etree._Element) -> None:
        self._pieces.append(Piece(Kind.OPEN, [outer], inside=inside))
        self._read_children(inside)
        self._pieces.append(Piece(Kind.CLOSE, [outer]))

    def _read_run(self, run: etree._Element) -> None:
        style, name = _style(run), _name(run)
        for child in run.iterchildren("*"):
            if child.tag == _W + "fldChar":
                self._read_field_mark(child)
            elif self._field is not None:
                self._field.elements.append(child)
                if child.tag == _W + "instrText":
                    self._instruction += child.text or ""
                elif child.tag == _W + "t":
                    self._field.text += child.text or ""
            elif child.tag == _W + "t":
                if child.text:
                    self._pieces.append(Piece(Kind.TEXT, [child], child.text, style, name=name))
            elif child.tag in _BREAKS or child.tag == _W + "instrText":
                self._pieces.append(Piece(Kind.BREAK))
            elif child.tag == _W + "noBreakHyphen":
                self._pieces.append(Piece(Kind.ATOM, [child], "\u2011"))
            elif child.tag not in _INVISIBLE:
                self._pieces.append(Piece(Kind.ATOM, [child]))

    def _read_field_mark(self, mark: etree._Element) -> None:
        """Treat a field as an atom from its beginning to its end, but the result of a link as text."""
        kind = mark.get(_W + "fldCharType")
        if kind == "begin":
            self._field_depth += 1
            if self._field is None:
                self._field, self._instruction = Piece(Kind.ATOM), ""
        if self._field is None:  # the end of a link, or of a field from before
            self._pieces.append(Piece(Kind.BREAK))
            self._field_depth = max(0, self._field_depth - (kind == "end"))
            return
        self._field.elements.append(mark)
        if kind == "separate" and self._instruction.strip().upper().startswith(_LINK_FIELDS):
            self._field = None
            self._pieces.append(Piece(Kind.BREAK))
        elif kind == "end":
            self._field_depth -= 1
            if not self._field_depth:
                self._pieces.append(self._field)
                self._field = None


def _style(run: etree._Element) -> str:
    properties = run.find(_W + "rPr")
    if properties is None:
        return ""
    return "".join(described(child) for child in properties if child.tag not in _NO_STYLE)


def _name(run: etree._Element) -> str:
    position = run.find(f"{_W}rPr/{_W}vertAlign")
    return "" if position is None else _NAMES.get(position.get(_W + "val", ""), "")


def _visible_text(element: etree._Element) -> str:
    is_visible = element.tag in (_W + "fldSimple", _W + "sdt")
    return "".join(leaf.text or "" for leaf in element.iter(_W + "t")) if is_visible else ""
