"""Folder for the documents of one process, and removal of folders that killed processes left behind."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

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
