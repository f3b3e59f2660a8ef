"""Tables as text: every cell with a letter in it, in the dialect that the file has."""

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import BinaryIO, Literal

from server.errors import InvalidDocument
from server.files.archive import Rewrite
from server.files.encoding import Encoding, detect
from server.files.limits import FileLimits

_WINDOW_ROWS = 200
_SAMPLE_CHARACTERS = 4096  # the sniffer's patterns take time quadratic in their number
_DELIMITERS = ",;\t|"
_QUOTING: tuple[Literal[0, 1, 2], ...] = (csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Every cell with a letter in it, the first row's too; nobody can know which are names of columns for programs."""
    encoding = detect(source.read(4))
    source.seek(len(encoding.mark))
    lines = io.TextIOWrapper(source, encoding.codec, newline="")
    try:
        sample = lines.read(_SAMPLE_CHARACTERS)
        dialect = _dialect(sample, encoding)
        source.seek(len(encoding.mark))
        lines = io.TextIOWrapper(lines.detach(), encoding.codec, newline="")
        if sink is not None:
            sink.write(encoding.mark)
        rows = csv.reader(lines, dialect, quoting=csv.QUOTE_MINIMAL)
        while window := list(islice(rows, _WINDOW_ROWS)):
            places = [
                (row, column)
                for row, cells in enumerate(window)
                for column, cell in enumerate(cells)
                if any(map(str.isalpha, cell))
            ]
            translated = iter((yield [(window[row][column],) for row, column in places]) if places else ())
            for row, column in places:
                window[row][column] = "".join(map(str, next(translated)))
            if sink is not None:
                sink.write(_written(window, dialect).encode(encoding.codec, "replace"))
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidDocument(f"the table cannot be read: {error}; save it as CSV in UTF-8") from error
    finally:
        lines.detach()


class _Number:
    """A cell that a writer which quotes texts alone leaves without quotes, written as it was."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __float__(self) -> float:
        return float(self._text)

    def __str__(self) -> str:
        return self._text


def _dialect(sample: str, encoding: Encoding) -> type[csv.Dialect]:
    """The delimiter that the sniffer finds; quoting and line ends are those that give the sample again."""

    class Found(csv.excel):
        """What this file is written in."""

    try:
        Found.delimiter = csv.Sniffer().sniff(sample, _DELIMITERS).delimiter
    except csv.Error:  # a single column has no delimiter
        Found.delimiter = ","
    Found.lineterminator = "\r\n" if "\r\n" in sample else "\n"
    # The end of the sample may be half a row.
    whole = sample[: sample.rfind("\n") + 1] if len(sample) == _SAMPLE_CHARACTERS else sample
    rows = list(csv.reader(io.StringIO(whole, newline=""), Found))
    for quoting in _QUOTING:
        Found.quoting = quoting
        if _written(rows, Found).rstrip("\r\n") == whole.rstrip("\r\n"):
            return Found
    Found.quoting = csv.QUOTE_MINIMAL
    return Found


def _written(rows: Iterable[Sequence[str]], dialect: type[csv.Dialect]) -> str:
    written = io.StringIO(newline="")
    writer = csv.writer(written, dialect)
    if dialect.quoting == csv.QUOTE_NONNUMERIC:
        writer.writerows([_Number(cell) if _is_number(cell) else cell for cell in cells] for cells in rows)
    else:
        writer.writerows(rows)
    return written.getvalue()


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
