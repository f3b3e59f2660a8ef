"""Uploaded files: copied within a limit, and named safely."""

import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO

from server.interface.errors import DocumentTooLarge, InvalidDocument

_COPY_BYTES = 1 << 20
_MAX_NAME_CHARACTERS = 200


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


def shown_name(name: str) -> str:
    """Return the last part of a name that a client gave, safe for headers and logs. No file gets this name."""
    last = name.replace("\\", "/").rpartition("/")[2]
    stem, dot, extension = "".join(filter(str.isprintable, last)).rpartition(".")
    return stem[: _MAX_NAME_CHARACTERS - len(extension)] + dot + extension
