"""Check that a checkpoint consists of files; without torch."""

from pathlib import Path

from model.checkpoints.errors import CheckpointError


def require_files(path: Path) -> None:
    """Raise `CheckpointError` for a pipe or a device, by itself or in a folder: opening a pipe can wait for ever."""
    paths = sorted((*path.glob("*"), *path.glob("*/*"))) if path.is_dir() else [path]
    for each in paths:
        kinds = {"a pipe": each.is_fifo(), "a device": each.is_char_device() or each.is_block_device()}
        if kind := next((kind for kind, is_one in kinds.items() if is_one), None):
            raise CheckpointError(f"{each} is {kind}, not a file; replace or remove it")
