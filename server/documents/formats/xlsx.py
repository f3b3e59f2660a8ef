"""Excel workbooks: texts of cells, comments, text boxes and charts. Numbers, formulas and names of sheets stay."""

import html
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote
from xml.parsers import expat  # behind `check_prolog`: no entity is declared

import regex
from lxml import etree

from server.documents.formats.pptx import DRAWING_TYPES, drawing_paragraphs
from server.documents.fragment import Rewrite
from server.documents.input import safe_xml
from server.documents.input.archive import Archive, opened
from server.documents.input.limits import FileLimits
from server.documents.markup.items import Kind
from server.documents.markup.named_texts import NamedTexts, compared_texts
from server.documents.markup.ooxml import Paragraph, Piece, described, part_types, rewrite_package, tag_pattern
from server.documents.markup.text_values import is_text
from server.interface.errors import InvalidDocument

_TYPES_OF_SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml."
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_SHEET_TYPE, _SHARED = f"{_TYPES_OF_SHEETS}worksheet+xml", f"{_TYPES_OF_SHEETS}sharedStrings+xml"
_COLUMNS = {f"{_TYPES_OF_SHEETS}table+xml": "tableColumn", f"{_TYPES_OF_SHEETS}pivotCacheDefinition+xml": "cacheField"}
# Characters that XML cannot contain, or reads as others: ST_Xstring in ISO/IEC 29500-1, 22.9.2.19.
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")

# A formula of a cell, or of a format that depends on its value.
_FORMULA = re.compile(rb"<(?:[\w.-]+:)?(f|formula)(?:\s[^<>]*)?>([^<]*\"[^<]*|[^<]*&quot;[^<]*)<")
_FILTER = re.compile(rb"<(?:[\w.-]+:)?(?:customFilter|filter)\s[^<>]*?\bval=(?:\"([^\"<>]*)\"|'([^'<>]*)')")

_REFERENCE = regex.compile(
    r"(?:(?:'(?P<quoted>(?:[^']|''){1,64}+)'|(?<![\w.])(?P<sheet>[\w.]{1,64}+))!)?+"
    r"(?:\$?(?P<left>[A-Z]{1,3})\$?(?P<top>[0-9]{1,7})(?::\$?(?P<right>[A-Z]{1,3})\$?(?P<bottom>[0-9]{1,7}))?"
    r"|\$?(?P<first>[A-Z]{1,3}):\$?(?P<last>[A-Z]{1,3}))(?![\w(])"
)
_NAME = regex.compile(r"[^\W\d][\w.]*+")
_CELL = re.compile(r"([A-Z]{1,3})[0-9]{1,7}")
_COLUMN = regex.compile(r"([^\W\d][\w.]*+)\[([^\[\]]{1,255}+)\]")  # of a table
_LAST_ROW = 1 << 20
_MAX_AREAS = 10_000


class _Area(NamedTuple):
    """Columns and rows of a sheet, the last ones included."""

    left: int
    top: int
    right: int
    bottom: int


@dataclass(slots=True)
class _Workbook:
    """The sheets of a workbook by name, their parts, and the names of its ranges with what they stand for."""

    parts: Mapping[str, str]
    names: Mapping[str, str]
    columns: Mapping[tuple[str, str], tuple[str, _Area]]  # part and cells of each column, by table and heading
    areas: dict[str, list[_Area]] = field(default_factory=dict)  # of lists, by part


def unescaped(text: str) -> str:
    """Return a text with its escaped characters."""
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)


def named_texts(archive: Archive, types: Mapping[str, str], main_types: Iterable[str]) -> NamedTexts:
    """Return the texts that must stay. `types` are those of the parts of the archive.

    They are the columns of tables and the fields of pivot tables; texts that formulas and filters compare with cells;
    texts of cells with a list of what they may contain, and of the cells that a list names.
    """
    texts: set[str] = set()
    compared: set[str] = set()
    workbook: _Workbook | None = None
    for name, kind in types.items():
        if (element := _COLUMNS.get(kind)) is not None:
            columns = safe_xml.parse(archive.read(name), name).iter(_S + element)
            texts.update(unescaped(column.get("name", "")) for column in columns)
        elif kind == _SHEET_TYPE:
            content = archive.read(name)
            compared.update(_compared(content))
            if b"dataValidation" in content:
                workbook = workbook or _workbook(archive, types, main_types)
                _add_lists(workbook, name, content)
    if workbook is not None:
        texts.update(_texts_of_areas(archive, types, workbook))
    return NamedTexts.of(texts, compared)


def _compared(content: bytes) -> Iterator[str]:
    for kind, formula in _FORMULA.findall(content):
        text = html.unescape(formula.decode("utf-8", "replace"))
        yield from compared_texts(text, is_condition=kind == b"formula")
    for values in _FILTER.findall(content):
        yield html.unescape(b"".join(values).decode("utf-8", "replace"))


def _workbook(archive: Archive, types: Mapping[str, str], main_types: Iterable[str]) -> _Workbook:
    main = next(name for name, kind in types.items() if kind in main_types)
    targets = _targets(archive, main)
    tree = safe_xml.parse(archive.read(main), main)
    parts = {
        sheet.get("name", "").casefold(): targets.get(sheet.get(_RELATION_ID, ""), "")
        for sheet in tree.iter(_S + "sheet")
    }
    names = {each.get("name", "").casefold(): each.text or "" for each in tree.iter(_S + "definedName")}
    columns: dict[tuple[str, str], tuple[str, _Area]] = {}
    for part in parts.values():
        for target in _targets(archive, part).values():
            if _COLUMNS.get(types.get(target, "")) == "tableColumn":
                columns |= {key: (part, area) for key, area in _table_columns(archive, target)}
    return _Workbook(parts, names, columns)


def _targets(archive: Archive, part: str) -> dict[str, str]:
    """Return the parts that a part is related to, by the ids of the relations."""
    folder, _, file = part.rpartition("/")
    relations = f"{folder}/_rels/{file}.rels".lstrip("/")
    if relations not in archive.names:
        return {}
    return {
        relation.get("Id", ""): posixpath.normpath(
            posixpath.join("/" + folder, unquote(relation.get("Target", "")))
        ).lstrip("/")
        for relation in safe_xml.parse(archive.read(relations), relations).getroot()
    }


def _table_columns(archive: Archive, part: str) -> Iterator[tuple[tuple[str, str], _Area]]:
    """Yield the name of a table with the heading of each of its columns, and the cells of the column."""
    table = safe_xml.parse(archive.read(part), part).getroot()
    reference = _REFERENCE.fullmatch(table.get("ref", ""))
    if reference is None or reference["right"] is None:
        return
    area = _area(reference)
    for index, column in enumerate(table.iter(_S + "tableColumn"), start=area.left):
        key = table.get("displayName", "").casefold(), unescaped(column.get("name", "")).casefold()
        yield key, area._replace(left=index, right=index)


def _add_lists(workbook: _Workbook, part: str, content: bytes) -> None:
    """Add the areas of cells with a list, and of those that the lists name."""
    for cells, formula in _lists(content, part):
        formulas = [(part, formula)]
        words = {word.casefold() for word in _NAME.findall(formula)}
        # A list that depends on another cell names one of the ranges there.
        chosen = workbook.names if "indirect" in words else words & workbook.names.keys()
        formulas += [("", workbook.names[name]) for name in chosen]
        for own_part, text in [(part, cells), *formulas]:
            for reference in _REFERENCE.finditer(text):
                name = (reference["quoted"] or reference["sheet"] or "").replace("''", "'").casefold()
                _add_area(workbook, workbook.parts.get(name, "") if name else own_part, _area(reference))
            for column in _COLUMN.finditer(text):
                if (found := workbook.columns.get((column[1].casefold(), column[2].casefold()))) is not None:
                    _add_area(workbook, *found)


def _add_area(workbook: _Workbook, part: str, area: _Area) -> None:
    areas = workbook.areas.setdefault(part, [])
    areas.append(area)
    if len(areas) > _MAX_AREAS:
        raise InvalidDocument(f"{part} may have {_MAX_AREAS} ranges of cells with lists. It has more")


def _area(reference: regex.Match[str]) -> _Area:
    if reference["first"] is not None:
        return _Area(_column(reference["first"]), 1, _column(reference["last"]), _LAST_ROW)
    left, top = _column(reference["left"]), int(reference["top"])
    if reference["right"] is None:
        return _Area(left, top, left, top)
    return _Area(left, top, _column(reference["right"]), int(reference["bottom"]))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _lists(content: bytes, name: str) -> Iterator[tuple[str, str]]:
    """Yield the cells and the formula of every validation by a list, those of newer versions of Excel included."""
    found: list[tuple[str, str]] = []
    path: list[str] = []
    attributes: Mapping[str, str] = {}
    texts: dict[str, str] = {}

    def start(tag: str, given: Mapping[str, str]) -> None:
        nonlocal attributes
        path.append(tag.rpartition(":")[2])
        if path[-1] == "dataValidation":
            attributes = given
            texts.clear()

    def end(_: str) -> None:
        if path.pop() == "dataValidation" and attributes.get("type") == "list":
            found.append((attributes.get("sqref", "") or texts.get("sqref", ""), texts.get("formula1", "")))

    def characters(text: str) -> None:
        if "dataValidation" in path[-3:]:
            own = "formula1" if "formula1" in path[-2:] else path[-1]
            texts[own] = texts.get(own, "") + text

    _read(content, name, start, end, characters)
    yield from found


def _texts_of_areas(archive: Archive, types: Mapping[str, str], workbook: _Workbook) -> Iterator[str]:
    shared: list[str] = []
    for name, kind in types.items():
        if kind == _SHARED:
            items = safe_xml.parse(archive.read(name), name).getroot().iterchildren(_S + "si")
            shared = [unescaped("".join(leaf.text or "" for leaf in item.iter(_S + "t"))) for item in items]
    for part, areas in workbook.areas.items():
        if part in types:
            for kind, text in _cells(archive.read(part), part, areas):
                if kind != "s":
                    yield unescaped(text)
                elif text.strip().isdecimal() and int(text) < len(shared):
                    yield shared[int(text)]


def _cells(content: bytes, name: str, areas: list[_Area]) -> Iterator[tuple[str, str]]:
    """Yield the type and the value of each cell of a sheet in these areas."""
    found: list[tuple[str, str]] = []
    is_value = False
    kind: str | None = None  # of a cell in an area
    parts: list[str] = []
    row = column = 0
    of_row: list[_Area] = []

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        nonlocal kind, row, column, of_row, is_value
        local = tag.rpartition(":")[2]
        if local == "row":  # rows and cells without a place follow those before them
            given = attributes.get("r", "")
            row, column = int(given) if given.isdecimal() else row + 1, 0
            of_row = [area for area in areas if area.top <= row <= area.bottom]
        elif local == "c":
            place = _CELL.fullmatch(attributes.get("r", ""))
            column = column + 1 if place is None else _column(place[1])
            is_inside = any(area.left <= column <= area.right for area in of_row)
            kind = attributes.get("t", "n") if is_inside else None
        is_value = local in ("v", "t") and kind is not None

    def end(tag: str) -> None:
        nonlocal kind, is_value
        is_value = False
        if tag.rpartition(":")[2] == "c" and kind is not None:
            found.append((kind, "".join(parts)))
            parts.clear()
            kind = None

    def characters(text: str) -> None:
        if is_value:
            parts.append(text)

    _read(content, name, start, end, characters)
    yield from (each for each in found if each[0] in ("s", "str", "inlineStr"))


def _read(
    content: bytes,
    name: str,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    characters: Callable[[str], None],
) -> None:
    safe_xml.check_prolog(content, name)
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise InvalidDocument(f"{name} is not well-formed XML: {error}") from error


_MAIN_TYPES = frozenset((f"{_TYPES_OF_SHEETS}sheet.main+xml", f"{_TYPES_OF_SHEETS}template.main+xml")) | {
    "application/vnd.ms-excel.sheet.macroEnabled.main+xml",
    "application/vnd.ms-excel.template.macroEnabled.main+xml",
}
_TEXT_TYPES = DRAWING_TYPES | {
    f"{_TYPES_OF_SHEETS}sharedStrings+xml",
    f"{_TYPES_OF_SHEETS}worksheet+xml",
    f"{_TYPES_OF_SHEETS}comments+xml",
    "application/vnd.ms-excel.threadedcomments+xml",
    "application/vnd.openxmlformats-officedocument.drawing+xml",
}

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
            if visible not in names and is_text(visible):
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
