"""Temporary folders that the next command deletes if their process was killed."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_CONTENT: Final = "content"
_LOCK: Final = "lock"


@contextmanager
def temporary_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder below `parent`, which is deleted at the end.

    Those of this prefix whose processes were killed are deleted first. A process locks a file in its folder, which the
    system unlocks when the process ends, however it ends.
    """
    delete_abandoned(parent, prefix)
    folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
    try:
        with (folder / "unlocked").open("w") as lock:
            with suppress(OSError):  # of a file system without locks; there, nothing is ever abandoned
                fcntl.flock(lock, fcntl.LOCK_EX)
            (folder / "unlocked").rename(folder / _LOCK)  # locked from the beginning for all others
            (folder / _CONTENT).mkdir()
            yield folder / _CONTENT
    finally:
        _delete(folder)


def delete_abandoned(parent: Path, prefix: str) -> None:
    """Delete folders of `temporary_folder` whose processes no longer run."""
    for folder in parent.glob(f"{prefix}*"):
        with suppress(OSError):  # in use, or none of these folders
            if folder.lstat().st_uid == os.geteuid():
                with (folder / _LOCK).open("r+") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _delete(folder)


def _delete(folder: Path) -> None:
    # The lock is last: a deletion that is interrupted is completed by the next process.
    shutil.rmtree(folder / _CONTENT, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
