"""Tables as text: every cell with a letter in it. Delimiters, quotes and line ends stay as they are written."""

import csv
import re
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from server.documents.fragment import Rewrite
from server.documents.input.encoding import read_text
from server.documents.input.limits import FileLimits

_WINDOW_CELLS = 1000
_SAMPLE_CHARACTERS = 4096  # the sniffer's patterns take time quadratic in their number
_DELIMITERS = ",;\t|"


def rewrite(source: BinaryIO, sink: BinaryIO | None, limits: FileLimits) -> Rewrite:
    """Every cell with a letter in it, the first row's too; nobody can know which are names of columns for programs."""
    text, encoding = read_text(source, limits)
    delimiter = _delimiter(text[:_SAMPLE_CHARACTERS])
    if sink is not None:
        sink.write(encoding.mark)
    cells = _cells(text, delimiter)
    while window := list(islice(cells, _WINDOW_CELLS)):
        contents = [_content(cell) for cell in window]
        # What begins with = is a formula.
        places = [
            place
            for place, content in enumerate(contents)
            if any(map(str.isalpha, content)) and not content.lstrip().startswith("=")
        ]
        translated = iter((yield [(contents[place],) for place in places]) if places else ())
        written = [cell[0] for cell in window]
        for place in places:
            written[place] = _written(window[place], "".join(map(str, next(translated))), delimiter)
        if sink is not None:
            sink.write("".join(written).encode(encoding.codec, "replace"))


def _delimiter(sample: str) -> str:
    try:
        return csv.Sniffer().sniff(sample, _DELIMITERS).delimiter
    except csv.Error:  # a single column has none
        return ","


def _cells(text: str, delimiter: str) -> Iterator[re.Match[str]]:
    """Cells with what ends them; together they are the text.

    The csv module would not say how a cell is written. A quote that is not closed at the end of a cell is a letter like
    others. Linear: a search for the closing one ends at the next lone quote, and no other begins before that.
    """
    end = rf"(?:{re.escape(delimiter)}|\r\n|\r|\n|\Z)"
    quoted = rf'(?P<before> *+")(?P<quoted>(?:[^"]++|"")*+)"(?= *+{end})'
    return re.finditer(rf"(?:{quoted})?+(?P<rest>[^{re.escape(delimiter)}\r\n]*+){end}", text)


def _content(cell: re.Match[str]) -> str:
    quoted = cell["quoted"]
    return cell["rest"] if quoted is None else quoted.replace('""', '"')


def _written(cell: re.Match[str], content: str, delimiter: str) -> str:
    """A cell with other content, in quotes if it had some or needs them now."""
    old = _content(cell)
    if content == old:
        return cell[0]
    escaped = content.replace('"', '""')
    if cell["quoted"] is not None:
        return cell["before"] + escaped + cell[0][cell.end("quoted") - cell.start() :]
    needs_quotes = any(mark in content for mark in (delimiter, "\r", "\n")) or content.count('"') > old.count('"')
    return (f'"{escaped}"' if needs_quotes else content) + cell[0][len(old) :]
