"""PowerPoint presentations: slides, their tables and diagrams, titles of charts, comments, and the speaker's notes."""

from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from server.documents.fragment import Rewrite
from server.documents.input.limits import FileLimits
from server.documents.markup.items import Kind
from server.documents.markup.ooxml import Paragraph, Piece, described, rewrite_package, tag_pattern

_TYPES = "application/vnd.openxmlformats-officedocument."
_MAIN_TYPES = frozenset(
    f"{_TYPES}presentationml.{kind}.main+xml" for kind in ("presentation", "slideshow", "template")
) | {"application/vnd.ms-powerpoint.presentation.macroEnabled.main+xml"}
# Charts and diagrams of any Office document.
DRAWING_TYPES = frozenset(
    (
        f"{_TYPES}drawingml.chart+xml",
        "application/vnd.ms-office.chartex+xml",
        f"{_TYPES}drawingml.diagramData+xml",
        "application/vnd.ms-office.drawingml.diagramDrawing+xml",
    )
)
# Not layouts and masters: their text ("Click to edit") is never shown.
_TEXT_TYPES = DRAWING_TYPES | {
    f"{_TYPES}presentationml.slide+xml",
    f"{_TYPES}presentationml.notesSlide+xml",
    f"{_TYPES}presentationml.comments+xml",
    "application/vnd.ms-powerpoint.comments+xml",
}

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_LINK = _A + "hlinkClick"
_NO_STYLE = frozenset(("lang", "altLang", "dirty", "err", "smtClean", "smtId", "noProof"))
_PROPERTIES = frozenset((_A + "pPr", _A + "endParaRPr"))
_COMMENT = "{http://schemas.openxmlformats.org/presentationml/2006/main}text"
_TEXT_TAG = tag_pattern("p", "text")


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Rewrite every paragraph; slide numbers, dates, formulas and pictures stay."""
    yield from rewrite_package(source, sink, limits, _MAIN_TYPES, _TEXT_TYPES, _paragraphs, _TEXT_TAG)


def _paragraphs(tree: etree._ElementTree) -> Iterator[Paragraph]:
    for comment in list(tree.iter(_COMMENT)):
        yield Paragraph([Piece(Kind.TEXT, [comment], comment.text or "")])
    yield from drawing_paragraphs(tree)


def drawing_paragraphs(tree: etree._ElementTree) -> Iterator[Paragraph]:
    """Yield the paragraphs of shapes, in presentations and other documents."""
    for paragraph in list(tree.iter(_A + "p")):  # the tree changes in between
        yield Paragraph([piece for child in paragraph.iterchildren("*") if (piece := _piece(child)) is not None])


def _piece(child: etree._Element) -> Piece | None:
    if child.tag in _PROPERTIES:
        return None
    if child.tag == _A + "br":
        return Piece(Kind.BREAK)
    leaf = child.find(_A + "t")
    text = "" if leaf is None else leaf.text or ""
    if child.tag == _A + "r" and leaf is not None:
        if not text:
            return None
        properties = child.find(_A + "rPr")
        is_link = properties is not None and properties.find(_LINK) is not None
        return Piece(Kind.TEXT, [leaf], text, _style(properties), is_link, name=_name(properties))
    return Piece(Kind.ATOM, [child], text)


def _name(properties: etree._Element | None) -> str:
    baseline = "" if properties is None else properties.get("baseline", "")
    return "sub" if baseline.startswith("-") else "sup" if baseline.strip("0%") else ""


def _style(properties: etree._Element | None) -> str:
    if properties is None:
        return ""
    attributes = sorted((name, value) for name, value in properties.attrib.items() if name not in _NO_STYLE)
    return repr(attributes) + "".join(map(described, properties)) if attributes or len(properties) else ""
