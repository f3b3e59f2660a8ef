"""Folders that are written as a whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bundle.manifest import MANIFEST_FILE
from export.checks import ExportError
from model.temporary_folders import delete_abandoned, temporary_folder

_PREFIX = ".kvasir-export-"


def name_of(folder: Path) -> str:
    """Return the name of a folder, also of `.` and of a link."""
    return Path(os.path.abspath(folder)).name  # noqa: PTH100 - resolve() names the target of a link


def require_empty(folder: Path) -> None:
    """Raise `ExportError` unless a folder is empty or missing. What a killed export left in it is deleted."""
    if folder.is_symlink() and not folder.exists():
        raise ExportError(
            f"{folder} is a link to {folder.readlink()}, which does not exist; create it or remove the link"
        )
    if folder.exists() and not folder.is_dir():
        raise ExportError(f"{folder} is a file; choose another folder")
    if folder.exists():
        delete_abandoned(folder, _PREFIX)
        if names := sorted(path.name for path in folder.iterdir()):
            if names[0].startswith(_PREFIX):
                raise ExportError(f"another process exports to {folder}; wait for its end or choose another folder")
            raise ExportError(f"{folder} is not empty, it contains {names[0]}; remove it or choose another folder")


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yield a folder to write to, whose files are in `folder` at the end; if anything fails, nothing is.

    A folder that exists stays: it may be a mounted volume, the working directory or a link.
    """
    is_there = folder.is_dir()
    parent = folder if is_there else folder.parent
    parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(parent, _PREFIX) as staging:
        yield staging
        # Another process may have exported to the folder meanwhile: files of two models must not be mixed.
        if folder.exists() and any(not path.name.startswith(_PREFIX) for path in folder.iterdir()):
            raise ExportError(f"another process has written to {folder} meanwhile; choose another folder")
        if not is_there:
            staging.rename(folder)
            return
        # A folder without a manifest is not a bundle.
        names = sorted((path.name for path in staging.iterdir()), key=lambda name: name == MANIFEST_FILE)
        try:
            for name in names:
                (staging / name).rename(folder / name)
        except BaseException:  # a signal, too
            for name in names:
                (folder / name).unlink(missing_ok=True)
            raise
