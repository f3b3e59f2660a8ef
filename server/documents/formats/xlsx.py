"""Excel workbooks: texts of cells, comments, text boxes and charts. Numbers, formulas and names of sheets stay."""

import re
from collections.abc import Iterator
from functools import partial
from typing import BinaryIO

from lxml import etree

from server.documents.formats.pptx import DRAWING_TYPES, drawing_paragraphs
from server.documents.formats.xlsx_names import named_texts, naming, unescaped
from server.documents.fragment import Rewrite
from server.documents.input.archive import opened
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
_TEXT_TYPES = DRAWING_TYPES | {
    f"{_SHEET}sharedStrings+xml",
    f"{_SHEET}worksheet+xml",
    f"{_SHEET}comments+xml",
    "application/vnd.ms-excel.threadedcomments+xml",
    f"{_TYPES}drawing+xml",
}

_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_TEXTS = (_S + "si", _S + "is", _S + "text", _S + "c")  # a shared string, one in a cell, that of a comment, a cell
# A cell whose value is a text, without a formula: some libraries write all texts so.
_TEXT_CELL = rb"<(?:[\w.-]+:)?c(?=\s[^<>]*\st=[\"']str[\"'])[^<>]*>\s*<(?:[\w.-]+:)?v[\s>]"
_TEXT_TAG = re.compile(tag_pattern("si", "is", "text", "p").pattern + b"|" + _TEXT_CELL)
_NAMES = {"superscript": "sup", "subscript": "sub"}
_CARRIAGE_RETURN = re.compile("(?<!_x005F)_x000D_")  # which programs on Windows write in front of a line feed


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Rewrite every text but those that tables, lists and formulas name. Readings of a changed text are removed."""
    with opened(source, limits) as archive:
        names = named_texts(archive, dict(part_types(archive)), _MAIN_TYPES)
    source.seek(0)

    def find_paragraphs(tree: etree._ElementTree) -> Iterator[Paragraph]:
        for text in list(tree.iter(*_TEXTS)):  # the tree changes in between
            visible = unescaped("".join(leaf.text or "" for leaf in _leaves(text)))
            if naming(visible) not in names and is_text(visible):
                pieces = [piece for child in text.iterchildren("*") if (piece := _piece(child)) is not None]
                yield Paragraph(pieces, partial(_remove_readings, text))
        yield from drawing_paragraphs(tree)

    yield from rewrite_package(source, sink, limits, _MAIN_TYPES, _TEXT_TYPES, find_paragraphs, _TEXT_TAG)


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
    position = None if properties is None else properties.find(_S + "vertAlign")
    name = "" if position is None else _NAMES.get(position.get("val", ""), "")
    return Piece(Kind.TEXT, [leaf], _CARRIAGE_RETURN.sub("\r", leaf.text), style, name=name)


def _remove_readings(text: etree._Element) -> None:
    for reading in text.findall(_S + "rPh"):
        text.remove(reading)
