"""Detection of a table's delimiter: the reading with equally long rows and clean cells wins."""

from collections import Counter
from dataclasses import dataclass

import regex

from server.interface.errors import InvalidDocument, InvalidRequest

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
_MIN_SCORE = 0.55  # below, the lines are no rows: a single column
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
    """Return the delimiter of a table. A table without one gets a comma; lines that are no rows get an empty text.

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
