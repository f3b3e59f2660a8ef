"""Tables as text: every cell with a text in it. Delimiters, quotes and line ends stay as they are written."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO

import regex

from server.documents.formats.csv_delimiter import detect_delimiter
from server.documents.formats.csv_heading import read_heading
from server.documents.fragment import Rewrite
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooComplex

_WINDOW_CELLS = 5000
_MAX_COLUMNS = 16_384  # of the rows that decide about a heading, as in spreadsheets
# Numbers and dates with letters in them, as programs write them: 1.5e-3, 2024-01-31T10:00:00Z, 31-Jan-2024, 10:30 pm.
_VALUE = regex.compile(
    r"\s*+(?:[+-]?[0-9.,']*[0-9]e[+-]?[0-9]+"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.,]+(?:Z|[+-][0-9:]+)?"
    r"|[0-9]{1,2}[ ./-][a-z]{3}[ ./-](?:[0-9]{2}|[0-9]{4})"
    r"|[0-9]{1,2}(?::[0-9]{2}){0,2} ?[ap]\.?m\.?)\s*+",
    regex.IGNORECASE,
)


def rewrite(
    source: BinaryIO,
    sink: BinaryIO | None,
    limits: FileLimits,
    encoding: str | None = None,
    delimiter: str | None = None,
    columns: tuple[str, ...] = (),
) -> Rewrite:
    """Rewrite every cell with a text in it. Numbers, dates and formulas stay, and so does a heading of columns.

    `delimiter` separates cells; None detects it. With `columns`, the first row is a heading, and only these columns are
    rewritten. Raises `InvalidDocument` if two delimiters are equally likely, and for a column that does not exist.
    """
    text, found = read_text(source, limits, encoding)
    if delimiter is None:
        delimiter = detect_delimiter(text)
    if sink is not None:
        sink.write(found.mark)
    heading = read_heading([_content(cell) for cell in row] for row in _rows(text, delimiter))
    chosen = heading.chosen(columns) if columns else None
    num_heading_cells = len(heading.names) if columns or heading.is_heading else 0
    column = 0
    cells = _cells(text, delimiter)
    while window := list(islice(cells, _WINDOW_CELLS)):
        written = [cell[0] for cell in window]
        contents = list(map(_content, window))
        are_texts = {content: _is_text(content) for content in set(contents)}
        places = [place for place in range(num_heading_cells, len(window)) if are_texts[contents[place]]]
        num_heading_cells = max(num_heading_cells - len(window), 0)
        if chosen is not None:
            columns_of, column = _columns(written, delimiter, column)
            places = [place for place in places if columns_of[place] in chosen]
        translated = (yield [(contents[place],) for place in places]) if places else []
        if sink is not None:
            for place, translation in zip(places, translated, strict=True):
                new = "".join(map(str, translation))
                if new != contents[place]:
                    written[place] = _written(window[place], new, delimiter)
            sink.write(found.encode_part("".join(written)))


def _columns(cells: Sequence[str], delimiter: str, column: int) -> tuple[list[int], int]:
    """Return the column of each cell, counted from 0, and of the next one. The first cell is in `column`."""
    columns = []
    for cell in cells:
        columns.append(column)
        column = column + 1 if delimiter and cell.endswith(delimiter) else 0
    return columns, column


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
    return any(map(str.isalpha, content)) and not content.lstrip().startswith("=") and _VALUE.fullmatch(content) is None


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


def _written(cell: regex.Match[str], content: str, delimiter: str) -> str:
    """Return a cell with other content, in quotes if it had some or needs them now."""
    old = _content(cell)
    escaped = content.replace('"', '""')
    if cell["quoted"] is not None:
        return cell["before"] + escaped + cell[0][cell.end("quoted") - cell.start() :]
    needs_quotes = any(mark in content for mark in (delimiter or "\n", "\r", "\n")) or content.count('"') > old.count(
        '"'
    )
    return (f'"{escaped}"' if needs_quotes else content) + cell[0][len(old) :]
