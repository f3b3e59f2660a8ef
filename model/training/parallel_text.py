"""Parallel text from files: one pair a line, source TAB target, UTF-8, plain or compressed with xz."""

import lzma
from collections.abc import Iterator
from pathlib import Path


def read_pairs(path: Path, *, swap_columns: bool = False) -> Iterator[tuple[str, str]]:
    """(source, target) of each line; with `swap_columns` the second column is the source.

    Raises ValueError naming the line that is not two columns with text in both.
    """
    open_file = lzma.open if path.suffix == ".xz" else open
    with open_file(path, "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            columns = line.rstrip("\r\n").split("\t")
            if len(columns) != 2 or not all(column.strip() for column in columns):
                raise ValueError(f"{path}, line {number}: two columns with text are needed, there are {len(columns)}")
            first, second = columns
            yield (second, first) if swap_columns else (first, second)
