"""Atomic replacement of files."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file to write; at the end it replaces `path` in one move. If anything fails, it is deleted.

    Raises OSError that names `path`, also for the errors that PyTorch and safetensors raise on a full disk.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        partial.replace(path)
    except (OSError, RuntimeError, SafetensorError) as error:
        partial.unlink(missing_ok=True)
        free = shutil.disk_usage(path.parent).free
        raise OSError(f"{path} cannot be written ({free / 1e6:.1f} MB free): {error}") from error
