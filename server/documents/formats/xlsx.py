"""Excel workbooks: texts of cells, comments, text boxes and charts. Numbers, formulas and names of sheets stay."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from server.documents.formats.pptx import drawing_paragraphs
from server.documents.fragment import Rewrite
from server.documents.input import safe_xml
from server.documents.input.archive import Archive, opened
from server.documents.input.limits import FileLimits
from server.documents.markup.items import Kind
from server.documents.markup.ooxml_packages import described, part_types, rewrite_package, tag_pattern
from server.documents.markup.ooxml_rebuilding import Piece
from server.documents.markup.ooxml_runs import Paragraph
from server.documents.markup.text_values import is_text

_TYPES = "application/vnd.openxmlformats-officedocument."
_SHEET = f"{_TYPES}spreadsheetml."
_MAIN_TYPES = frozenset((f"{_SHEET}sheet.main+xml", f"{_SHEET}template.main+xml")) | {
    "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
    "application/vnd.ms-excel.template.macroEnabled.main+xml",
}
_TEXT_TYPES = frozenset(
    (
        f"{_SHEET}sharedStrings+xml",
        f"{_SHEET}worksheet+xml",
        f"{_SHEET}comments+xml",
        f"{_TYPES}drawing+xml",
        f"{_TYPES}drawingml.chart+xml",
    )
)
_TABLE, _PIVOT_CACHE = f"{_SHEET}table+xml", f"{_SHEET}pivotCacheDefinition+xml"

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_TEXTS = (_S + "si", _S + "is", _S + "text", _S + "c")  # a shared string, one in a cell, that of a comment, a cell
# A cell whose value is a text, without a formula: some libraries write all texts so.
_TEXT_CELL = rb"<(?:[\w.-]+:)?c(?=\s[^<>]*\st=[\"']str[\"'])[^<>]*>\s*<(?:[\w.-]+:)?v[\s>]"
_TEXT_TAG = re.compile(tag_pattern("si", "is", "text", "p").pattern + b"|" + _TEXT_CELL)
# Characters that XML cannot contain, or reads as others: ST_Xstring in ISO/IEC 29500-1, 22.9.2.19.
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_CARRIAGE_RETURN = re.compile("(?<!_x005F)_x000D_")  # which programs on Windows write in front of a line feed


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Rewrite every text. Texts equal to a column of a table or a pivot table stay: formulas name these columns."""
    with opened(source, limits) as archive:
        columns = _column_names(archive)
    source.seek(0)

    def find_paragraphs(tree: etree._ElementTree) -> Iterator[Paragraph]:
        for text in list(tree.iter(*_TEXTS)):  # the tree changes in between
            visible = _unescaped("".join(leaf.text or "" for leaf in _leaves(text)))
            if visible.strip() not in columns and is_text(visible):
                yield Paragraph([piece for child in text.iterchildren("*") if (piece := _piece(child)) is not None])
        yield from drawing_paragraphs(tree)

    yield from rewrite_package(source, sink, limits, _MAIN_TYPES, _TEXT_TYPES, find_paragraphs, _TEXT_TAG)


def _column_names(archive: Archive) -> frozenset[str]:
    """Return the names of the columns of tables and of the fields of pivot tables. Headings must be equal to them."""
    names = set()
    for name, kind in part_types(archive):
        if kind in (_TABLE, _PIVOT_CACHE):
            for column in safe_xml.parse(archive.read(name), name).iter(_S + "tableColumn", _S + "cacheField"):
                names.add(_unescaped(column.get("name", "")).strip())
    return frozenset(names)


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)


def _leaves(text: etree._Element) -> Iterator[etree._Element]:
    if text.tag == _S + "c":
        if text.get("t") == "str" and text.find(_S + "f") is None:
            yield from text.iterchildren(_S + "v")
        return
    for child in text.iterchildren(_S + "t", _S + "r"):
        leaf = child if child.tag == _S + "t" else child.find(_S + "t")
        if leaf is not None:
            yield leaf


def _piece(child: etree._Element) -> Piece | None:
    """Return a child as a piece; None for the pronunciation of Japanese texts, and for empty ones."""
    leaf = child.find(_S + "t") if child.tag == _S + "r" else child if child.tag in (_S + "t", _S + "v") else None
    if leaf is None or not leaf.text:
        return None
    properties = child.find(_S + "rPr")
    style = "" if properties is None else "".join(map(described, properties))
    return Piece(Kind.TEXT, [leaf], _CARRIAGE_RETURN.sub("\r", leaf.text), style)
