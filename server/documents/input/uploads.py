"""Uploaded files: copied within a limit, and named safely."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from server.interface.errors import DocumentTooLarge, InvalidDocument

_COPY_BYTES = 1 << 20
_MAX_NAME_CHARACTERS = 200
_FOLDER_PREFIX = "kvasir-documents-"


def copy_upload(content: BinaryIO, parent: Path, max_bytes: int) -> Path:
    """Copy a file as `source` into a new folder in `parent`, and return that; stops at the first byte above the limit.

    Raises `DocumentTooLarge`, and `InvalidDocument` for an empty file.
    """
    folder = Path(tempfile.mkdtemp(dir=parent))
    num_bytes = 0
    try:
        with (folder / "source").open("wb") as source:
            while chunk := content.read(_COPY_BYTES):
                num_bytes += len(chunk)
                if num_bytes > max_bytes:
                    raise DocumentTooLarge(f"a document may have {max_bytes} bytes. Given: more than {max_bytes} bytes")
                source.write(chunk)
        if not num_bytes:
            raise InvalidDocument("the file is empty: it has 0 bytes")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def new_folder(parent: Path | None) -> Path:
    """Return a new folder for the documents of this process; None is the system's folder for temporary files.

    Folders that processes left behind when they were killed are removed.
    """
    base = Path(tempfile.gettempdir()) if parent is None else parent
    for left in base.glob(f"{_FOLDER_PREFIX}*-*"):
        number = left.name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
        # In a container the process before had the same number.
        if number.isdecimal() and (int(number) == os.getpid() or not _is_alive(int(number))):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-", dir=base))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def shown_name(name: str) -> str:
    """Return the last part of a name that a client gave, safe for headers and logs. No file gets this name."""
    last = name.replace("\\", "/").rpartition("/")[2]
    stem, dot, extension = "".join(filter(str.isprintable, last)).rpartition(".")
    return stem[: _MAX_NAME_CHARACTERS - len(extension)] + dot + extension
