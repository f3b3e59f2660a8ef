"""Tables as text: every cell with a text in it. Delimiters, quotes and line ends stay as they are written."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import BinaryIO, NamedTuple

import regex

from server.documents.fragment import Fragment, Rewrite, as_window, next_window
from server.documents.input.encoding import read_text
from server.documents.input.limits import Density, FileLimits
from server.documents.markup.text_values import is_text
from server.interface.errors import DocumentTooComplex, InvalidDocument, InvalidRequest

DELIMITERS = (",", ";", "\t", "|")
DELIMITER_NAMES = {"tab": "\t", r"\t": "\t"}

_LINE_END = regex.compile(r"\r\n|\r|\n")
# A cell of a wrong reading begins in the middle of a sentence, or has quotes at the delimiters of the right reading, or
# these delimiters themselves. A delimiter counts only against those that are more frequent in sentences.
_ALWAYS_WRONG = r"\A(?!\s+\Z)\s|[,;\t|] *\"|\" *[,;\t|]"
_WRONG = {
    "\t": regex.compile(_ALWAYS_WRONG),
    "|": regex.compile(rf"{_ALWAYS_WRONG}|\t"),
    ";": regex.compile(rf"{_ALWAYS_WRONG}|[\t|]"),
    ",": regex.compile(rf"{_ALWAYS_WRONG}|[\t|]"),
}
# Without white space behind it, a mark separates cells or the parts of an address or a list. Digits around a comma: a
# decimal comma.
_DOUBTFUL = {";": regex.compile(r"(?<!\d),(?=\S)|,(?=[^\s\d])"), ",": regex.compile(r";(?=\S)")}
_MAX_JUDGED_CELLS = 2000  # in which cleanness is judged; the length of rows is judged in all of the table
_MIN_SCORE = 0.55  # below, the lines are not rows: a single column
_MIN_LEAD = 0.05  # between the best two readings


@dataclass(frozen=True, slots=True)
class _Reading:
    """A table read with one delimiter."""

    delimiter: str
    num_columns: int
    num_rows: int
    score: float  # share of rows of this length, times share of clean cells


def check_delimiter(given: str) -> str:
    """Return the delimiter of this name; raises `InvalidRequest` with the allowed ones."""
    written = DELIMITER_NAMES.get(given, given)
    if written not in DELIMITERS:
        allowed = ", ".join([*map(repr, DELIMITERS), *DELIMITER_NAMES])
        raise InvalidRequest(f"`delimiter` must be one of {allowed}. Given: {given[:20]!r}")
    return written


def detect_delimiter(text: str) -> str:
    """Return the delimiter of a table. A table without one gets a comma; lines that are not rows get an empty text.

    Raises `InvalidDocument` if two delimiters are equally likely.
    """
    readings = [reading for delimiter in DELIMITERS if (reading := _read(text, delimiter)) is not None]
    readings.sort(key=lambda reading: -reading.score)
    if not readings:
        return ","
    if readings[0].score < _MIN_SCORE:
        return ""
    best, *others = readings
    if others and best.score - others[0].score < _MIN_LEAD:
        first, second = best, others[0]
        raise InvalidDocument(
            f"the delimiter may be {first.delimiter!r} ({first.num_columns} columns in {first.num_rows} rows) or "
            f"{second.delimiter!r} ({second.num_columns} columns in {second.num_rows} rows); set `delimiter`"
        )
    return best.delimiter


def _read(text: str, delimiter: str) -> _Reading | None:
    if delimiter not in text:
        return None
    rows = [row for row in _LINE_END.split(_without_quoted(text, delimiter)) if row.strip(" ")]
    lengths = Counter(row.count(delimiter) + 1 for row in rows)
    num_columns, num_rows = max(lengths.items(), key=lambda item: (item[1], item[0]), default=(1, 0))
    if num_columns < 2:
        return _Reading(delimiter, num_columns, num_rows, 0.0)
    wrong, doubtful = _WRONG[delimiter], _DOUBTFUL.get(delimiter)
    num_clean, num_cells = 0.0, 0
    for row in rows:
        for cell in row.split(delimiter):
            num_cells += 1
            if wrong.search(cell) is None:
                num_clean += 0.5 if doubtful is not None and doubtful.search(cell) else 1
        if num_cells > _MAX_JUDGED_CELLS:
            break
    return _Reading(delimiter, num_columns, num_rows, num_rows / len(rows) * num_clean / num_cells)


def _without_quoted(text: str, delimiter: str) -> str:
    """Return the table with an empty cell for each quoted one: its content decides nothing."""
    if '"' not in text:
        return text
    border = rf"{regex.escape(delimiter)}\r\n"
    # Begins where a cell begins, and ends where one ends; a quote that is not closed is a plain character.
    return regex.sub(rf'(?:\A|(?<=[{border}])) *+"(?:[^"]++|"")*+" *+(?=[{border}]|\Z)', "", text)


_ROWS = 200  # that are compared with the first one
_MAX_NAME_CHARACTERS = 60
_IDENTIFIER = regex.compile(r"[a-z][a-z0-9]*+(?:[_.-][a-z0-9]++)*+|[a-z]++(?:[A-Z][a-z0-9]*+)++")
# Names of columns, one of which makes a row of identifiers a heading: other words in lower case may be data.
_USUAL_NAMES = frozenset(
    (
        "category", "code", "comment", "content", "context", "date", "description", "email", "id", "key", "label",
        "lang", "language", "locale", "message", "msgid", "name", "notes", "source", "string", "tags", "target", "text",
        "title", "translation", "type", "url", "value",
    )
)  # fmt: skip


# Names of columns in which a word alone is a name for programs.
_KEY_NAMES = frozenset(("code", "guid", "id", "identifier", "key", "locale", "slug", "uuid"))


@dataclass(frozen=True, slots=True)
class Heading:
    """First row of a table."""

    names: tuple[str, ...]
    is_heading: bool

    @property
    def key_columns(self) -> frozenset[int]:
        """The indexes of columns whose words are names for programs."""
        names = self.names if self.is_heading else ()
        return frozenset(index for index, name in enumerate(names) if name.strip().lower() in _KEY_NAMES)

    def chosen(self, columns: Sequence[str]) -> frozenset[int]:
        """Return the indexes of columns given by name, without regard to case, or by number from 1.

        Raises `InvalidDocument` with the columns of the table.
        """
        by_name = {name.strip().casefold(): index for index, name in reversed(list(enumerate(self.names)))}
        chosen = set()
        for column in columns:
            wanted = column.strip().casefold()
            if wanted in by_name:
                chosen.add(by_name[wanted])
            elif wanted.isdecimal() and 1 <= int(wanted) <= len(self.names):
                chosen.add(int(wanted) - 1)
            else:
                available = ", ".join(name.strip()[:_MAX_NAME_CHARACTERS] for name in self.names[:30])
                raise InvalidDocument(
                    f"`columns` must be numbers from 1 to {len(self.names)}, or among {available}. "
                    f"Given: {column[:40]!r}"
                )
        return frozenset(chosen)


def read_heading(rows: Iterable[Sequence[str]]) -> Heading:
    """Return the first of `rows`. It is a heading if its cells are different short names, and one of these holds:

    a column below has numbers only, or all names are identifiers, and not plain words.
    """
    first, *others = list(islice(rows, _ROWS)) or [()]
    names = tuple(first)
    stripped = [name.strip() for name in names]
    are_names = (
        len(stripped) > 1
        and len(set(stripped)) == len(stripped)
        and all(0 < len(name) <= _MAX_NAME_CHARACTERS and not name[0].isdigit() for name in stripped)
        and any(len(row) == len(names) for row in others)
    )
    are_identifiers = all(map(_IDENTIFIER.fullmatch, stripped)) and any(
        name in _USUAL_NAMES or not name.isalpha() or not name.islower() for name in stripped
    )
    is_heading = are_names and (
        are_identifiers
        or any(_is_of_numbers([row[column] for row in others if column < len(row)]) for column in range(len(names)))
    )
    return Heading(names, is_heading)


def _is_of_numbers(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(not any(map(str.isalpha, cell)) and any(map(str.isdigit, cell)) for cell in filled)


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
    found_cells = _text_cells(text, delimiter, num_heading_cells, chosen, heading.key_columns)
    cells = _CELLS.bounded(found_cells, len(text), "cells with a text")
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
    text: str, delimiter: str, num_heading_cells: int, chosen: frozenset[int] | None, keys: frozenset[int]
) -> Iterator[_TextCell]:
    """Yield the cells with a text behind the heading, of all columns or of the `chosen` ones.

    Without `chosen`, a word alone in one of the columns `keys` is no text.
    """
    column = 0
    for number, cell in enumerate(_cells(text, delimiter)):
        its_column = column
        if chosen is not None or keys:
            column = column + 1 if delimiter and cell[0].endswith(delimiter) else 0
        if number < num_heading_cells or (chosen is not None and its_column not in chosen):
            continue
        content = _content(cell)
        is_key = chosen is None and its_column in keys and len(content.split()) == 1
        if not is_key and _is_text(content):
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


rewrite_tabs = partial(rewrite, delimiter="\t")
