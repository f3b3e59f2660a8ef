"""Reader of parallel text: one pair a line, source TAB target, UTF-8, plain or compressed with xz."""

import lzma
from collections.abc import Iterator
from pathlib import Path


def read_pairs(path: Path, *, swap_columns: bool = False) -> Iterator[tuple[str, str]]:
    """Yield (source, target) of each line; with `swap_columns` the second column is the source.

    Raises ValueError with the number of a line that is not UTF-8 or has not two columns of text, and for a compressed
    file that is damaged or truncated.
    """
    for number, line in enumerate(_lines(path), start=1):
        try:
            # A byte order mark is not part of the first word.
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}, line {number}: not UTF-8 at byte {error.start + 1} of the line") from error
        columns = text.rstrip("\r\n").split("\t")
        if len(columns) != 2 or not all(column.strip() for column in columns):
            raise ValueError(f"{path}, line {number}: a line must have two columns of text. Given: {len(columns)}")
        first, second = columns
        yield (second, first) if swap_columns else (first, second)


def _lines(path: Path) -> Iterator[bytes]:
    open_file = lzma.open if path.suffix == ".xz" else open
    with open_file(path, "rb") as lines:
        try:
            yield from lines
        except (EOFError, lzma.LZMAError) as error:
            raise ValueError(f"{path} is damaged, truncated or not compressed with xz: {error}") from error
