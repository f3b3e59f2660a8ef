"""Tables as text: every cell with a text in it. Delimiters, quotes and line ends stay as they are written."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import regex

from server.documents.formats.csv_delimiter import detect_delimiter
from server.documents.formats.csv_heading import read_heading
from server.documents.fragment import Fragment, Rewrite, as_window, next_window
from server.documents.input.density import Density
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits
from server.documents.markup.text_values import is_text
from server.interface.errors import DocumentTooComplex

_WINDOW_CELLS = 5000
_CELLS = Density(20_000, 7)  # names of one word, with their delimiters, have seven letters
_MAX_COLUMNS = 16_384  # of the rows that decide about a heading, as in spreadsheets
# Numbers and dates with letters in them, as programs write them: 1.5e-3, 2024-01-31T10:00:00Z, 31-Jan-2024, 10:30 pm.
_VALUE = regex.compile(
    r"\s*+(?:[+-]?[0-9.,']*[0-9]e[+-]?[0-9]+"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.,]+(?:Z|[+-][0-9:]+)?"
    r"|[0-9]{1,2}[ ./-][a-z]{3}[ ./-](?:[0-9]{2}|[0-9]{4})"
    r"|[0-9]{1,2}(?::[0-9]{2}){0,2} ?[ap]\.?m\.?)\s*+",
    regex.IGNORECASE,
)


# The first line of files that tell Excel their delimiter, whatever the language of its user.
_DELIMITER_LINE = regex.compile(r'(?P<quote>"?)sep=(?P<delimiter>[^\r\n])(?P=quote)(?:\r\n|\r|\n)', regex.IGNORECASE)


class _TextCell(NamedTuple):
    """A cell, and the place of its content in the file, without quotes around it."""

    content: str
    begin: int
    end: int
    is_quoted: bool


def rewrite(
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    encoding: str | None = None,
    delimiter: str | None = None,
    columns: tuple[str, ...] = (),
) -> Rewrite:
    """Rewrite every cell with a text in it. Numbers, dates and formulas stay, and so does a heading of columns.

    `delimiter` separates cells; None reads it from a first line `sep=;`, or detects it. With `columns`, the row behind
    that is a heading, and only these columns are rewritten. Raises `InvalidDocument` if two delimiters are equally
    likely, and for a column that does not exist.
    """
    text, found = read_text(source, limits, encoding)
    first_line = ""
    if (stated := _DELIMITER_LINE.match(text)) is not None:
        delimiter = delimiter or stated["delimiter"]
        first_line, text = stated[0], text[stated.end() :]
    if delimiter is None:
        delimiter = detect_delimiter(text)
    heading = read_heading([_content(cell) for cell in row] for row in _rows(text, delimiter))
    chosen = heading.chosen(columns) if columns else None
    num_heading_cells = len(heading.names) if columns or heading.is_heading else 0
    cells = _CELLS.bounded(_text_cells(text, delimiter, num_heading_cells, chosen), len(text), "cells with a text")
    is_held = limits.holds(len(text))
    written: list[str] = []
    position = 0
    while window := next_window(cells, _WINDOW_CELLS, is_held=is_held):
        fragments: list[Fragment] = [(cell.content,) for cell in window]
        translations = yield as_window(fragments, is_held=is_held)
        for cell, translation in zip(window, translations, strict=True):
            new = "".join(map(str, translation))
            if new != cell.content:
                written += [text[position : cell.begin], _written(cell, new, delimiter)]
                position = cell.end
    if sink is not None:
        sink.write(found.encode("".join([first_line, *written, text[position:]])))


def _text_cells(
    text: str, delimiter: str, num_heading_cells: int, chosen: frozenset[int] | None
) -> Iterator[_TextCell]:
    """Yield the cells with a text behind the heading, of all columns or of the `chosen` ones."""
    column = 0
    for number, cell in enumerate(_cells(text, delimiter)):
        its_column = column
        if chosen is not None:
            column = column + 1 if delimiter and cell[0].endswith(delimiter) else 0
        if number < num_heading_cells or (chosen is not None and its_column not in chosen):
            continue
        content = _content(cell)
        if _is_text(content):
            is_quoted = cell["quoted"] is not None
            yield _TextCell(content, *cell.span("quoted" if is_quoted else "rest"), is_quoted)


def _rows(text: str, delimiter: str) -> Iterator[list[regex.Match[str]]]:
    """Yield rows. Raises `DocumentTooComplex` for one with too many cells."""
    cells: list[regex.Match[str]] = []
    for cell in _cells(text, delimiter):
        cells.append(cell)
        if not (delimiter and cell[0].endswith(delimiter)):
            yield cells
            cells = []
        elif len(cells) == _MAX_COLUMNS:
            raise DocumentTooComplex(
                f"a table may have {_MAX_COLUMNS} columns. The row that begins with {cells[0][0][:40]!r} has more"
            )
    if cells:
        yield cells


def _is_text(content: str) -> bool:
    # A formula begins with =.
    return is_text(content) and not content.lstrip().startswith("=") and _VALUE.fullmatch(content) is None


def _cells(text: str, delimiter: str) -> Iterator[regex.Match[str]]:
    """Yield cells with their ends; together they are the text.

    The csv module does not report how a cell is written. A quote that is not closed at the end of a cell is a plain
    character. Linear: a search for the closing quote ends at the next lone quote, and no other begins before that.
    """
    end = rf"(?:{f'{regex.escape(delimiter)}|' if delimiter else ''}\r\n|\r|\n|\Z)"
    quoted = rf'(?P<before> *+")(?P<quoted>(?:[^"]++|"")*+)"(?= *+{end})'
    return regex.finditer(rf"(?:{quoted})?+(?P<rest>[^{regex.escape(delimiter)}\r\n]*+){end}", text)


def _content(cell: regex.Match[str]) -> str:
    quoted, rest = cell.group("quoted", "rest")
    return rest if quoted is None else quoted.replace('""', '"')


def _written(cell: _TextCell, content: str, delimiter: str) -> str:
    """Return other content for a cell, in quotes if it needs them now."""
    escaped = content.replace('"', '""')
    if cell.is_quoted:
        return escaped
    needs_quotes = any(mark in content for mark in (delimiter or "\n", "\r", "\n")) or content.count(
        '"'
    ) > cell.content.count('"')
    return f'"{escaped}"' if needs_quotes else content
