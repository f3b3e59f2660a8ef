"""Files of a command: checked before models load, opened by name, and their formats."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from server.documents.formats.options import FormatOptions
from server.interface.errors import InvalidRequest, UnsupportedFormat

STANDARD = "-"  # standard input or output


def check_input(name: str) -> None:
    """Raise OSError, with the path and the cause, unless the file can be read."""
    if name == STANDARD:
        return
    if not name:  # a variable of the shell that is not set
        raise ValueError("the name of the input is empty; name a file, or - for standard input")
    path = Path(name)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    path.stat()
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def check_output(name: str, flag: str, source: str) -> None:
    """Raise ValueError or OSError unless the file can be created and is not the input."""
    if name == STANDARD:
        return
    if not name:
        raise ValueError(f"`{flag}` must be the name of a file. It is empty")
    path = Path(name)
    if path.is_dir():
        raise ValueError(f"`{flag}` must be a file. {name} is a folder")
    if not path.parent.is_dir():
        raise ValueError(f"the folder of `{flag}` does not exist: {path.parent}; create it or name another")
    if source != STANDARD and path.exists() and path.samefile(source) and path.is_file():
        raise ValueError(f"`{flag}` must not be the input, which would be overwritten. Given: {name}")
    if not path.exists() and not path.is_symlink():
        try:
            path.open("xb").close()
        except FileNotFoundError:  # of the file systems of the kernel, such as /proc
            raise ValueError(f"{name} cannot be created; name a file in another folder") from None
        path.unlink()


@contextmanager
def opened(name: str, mode: str) -> Iterator[BinaryIO]:
    """Open a binary stream by file name; - is standard input or output, which stays open."""
    standard = sys.stdin.buffer if mode == "rb" else sys.stdout.buffer
    with nullcontext(standard) if name == STANDARD else Path(name).open(mode) as stream:
        yield stream  # type: ignore[misc]  # open() cannot see that the mode is binary


if TYPE_CHECKING:
    from server.documents.formats.registry import DocumentFormat

_LINES = ".txt"


def input_format(name: str, options: FormatOptions, format_name: str | None) -> "DocumentFormat | None":
    """Return the format of a document; None for lines of text.

    Standard input and pipes without the extension of a document are lines. Raises `UnsupportedFormat` for other files,
    with the formats available, and `InvalidRequest` for an option that the format does not have.
    """
    is_stream = name == STANDARD or not Path(name).is_file()
    if is_stream and format_name is None and not _is_document(name):
        return None
    extension = Path(name).suffix.lower() if format_name is None else f".{format_name.lower().removeprefix('.')}"
    if extension == _LINES and not (options.delimiter or options.columns):
        return None
    # Imported where they are needed: the formats take as long to import as a hundred lines to translate.
    from server.documents.formats.registry import format_of

    try:
        kind = format_of(name, options, format_name)
    except UnsupportedFormat as error:
        raise UnsupportedFormat(f"{error}: `--format txt` translates line by line") from error
    if is_stream:
        raise InvalidRequest(f"a {kind.extension} document must be a file. Given: standard input or a pipe")
    return kind


def _is_document(name: str) -> bool:
    extension = Path(name).suffix.lower()
    if extension in ("", _LINES):
        return False
    from server.documents.formats.registry import FORMATS

    return extension in FORMATS


def check_document_output(output: str, kind: "DocumentFormat", *, is_named: bool) -> None:
    """Raise `InvalidRequest` unless the output is a file with the extension of the result; any if `is_named`."""
    expected = kind.result_extension or kind.extension
    if output == STANDARD or (Path(output).suffix.lower() != expected and not (is_named and not kind.result_extension)):
        raise InvalidRequest(
            f"the output of a {kind.extension} file must end in {expected}; set it with --output. Given: {output}"
        )
    if Path(output).exists() and not Path(output).is_file():  # it would be replaced
        raise InvalidRequest(f"the output of a document must be a file. {output} is a pipe or a device")
