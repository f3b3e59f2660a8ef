"""Files of a command: checked before models load, opened by name."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

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
