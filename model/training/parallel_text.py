"""Readers of parallel text: a pair a line, source TAB target; or a translation memory. Plain or compressed with xz."""

import lzma
from collections.abc import Iterator
from pathlib import Path

from model.training.translation_memory import Languages, Pair, read_catalogue, read_tmx, read_xliff


def read_pairs(path: Path, languages: Languages | None = None, *, swap_columns: bool = False) -> Iterator[Pair]:
    """Yield the (source, target) pairs of a file.

    `.tmx`, `.xliff` and `.xlf` require the `languages` of source and target, which select the sides. In every other
    file the first column or message is the source; with `swap_columns`, the second.

    Raises ValueError with the file and the place of the error: a line that is not UTF-8 or has not two columns of text,
    a memory that is not well-formed or has other languages, a compressed file that is damaged or truncated.
    """
    suffix = path.with_suffix("").suffix if path.suffix == ".xz" else path.suffix
    if suffix.lower() not in (".tmx", ".xliff", ".xlf", ".po"):
        yield from _read_columns(path, swap_columns=swap_columns)
        return
    content = b"".join(_lines(path))
    try:
        if suffix.lower() == ".po":
            yield from read_catalogue(content, swap_columns=swap_columns)
            return
        if languages is None:
            raise ValueError("a translation memory is read with --source and --target only")
        yield from (read_tmx if suffix.lower() == ".tmx" else read_xliff)(content, languages)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read_columns(path: Path, *, swap_columns: bool) -> Iterator[Pair]:
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
