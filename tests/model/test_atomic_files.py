import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from model.atomic_files import replacing

WEIGHTS = {"weight": torch.zeros(5000)}


@contextmanager
def _no_file_beyond(num_bytes: int) -> Iterator[None]:
    """Limit the size of files: longer ones are cut off, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


WRITERS: list[Callable[[Path], object]] = [
    lambda file: torch.save(WEIGHTS, file),
    lambda file: save_file(WEIGHTS, file),
    lambda file: file.write_bytes(bytes(20_000)),
]


@pytest.mark.parametrize("write", WRITERS)
def test_what_does_not_fit_leaves_the_file_as_it_was_and_names_it(
    write: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "state.pt"
    path.write_text("before", "utf-8")
    with (
        pytest.raises(OSError, match=r"state\.pt cannot be written \([\d.]+ MB free\)"),
        _no_file_beyond(10_000),
        replacing(path) as file,
    ):
        write(file)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text("utf-8") == "before"
    with replacing(path) as file:
        write(file)
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_size >= 20_000
