"""Uploaded documents in a folder of this process, and removal of folders that killed processes left behind."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from server.interface.errors import DocumentTooLarge, InvalidDocument

_PREFIX = "kvasir-documents-"


class WorkFolder:
    """A new folder in `parent`, or in the system's folder for temporary files. Blocking.

    The process holds a lock on it for as long as it lives: a number of a process, which is used again, would not show
    whether the owner is gone. `close` removes the folder.
    """

    def __init__(self, parent: Path | None) -> None:
        remove_abandoned_folders(parent)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_base(parent)))
            with suppress(FileNotFoundError):
                self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                if self.path.exists():  # another process may have removed it before it was locked
                    return
                os.close(self._lock)

    def close(self) -> None:
        """Remove the folder with all files."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_abandoned_folders(parent: Path | None) -> None:
    """Remove the folders in `parent` whose processes have ended without removing them. Blocking."""
    for left in _base(parent).glob(f"{_PREFIX}[0-9]*-*"):
        with suppress(OSError):  # a link, a folder of another user, or one whose owner lives
            lock = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(lock)


def _base(parent: Path | None) -> Path:
    return Path(tempfile.gettempdir()) if parent is None else parent


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
