"""Files that are complete or as they were before."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write beside `path`, whose place it takes in one move at the end; if that fails, nothing is left of it.

    Raises OSError that names `path`, also for what PyTorch and safetensors make of a disk that is full.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        yield partial
        partial.replace(path)
    except (OSError, RuntimeError, SafetensorError) as error:
        partial.unlink(missing_ok=True)
        free = shutil.disk_usage(path.parent).free
        raise OSError(f"{path} cannot be written ({free / 1e6:.1f} MB are free there): {error}") from error
