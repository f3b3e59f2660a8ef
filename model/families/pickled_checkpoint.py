"""Checkpoints that `torch.save` wrote with their options: OpenNMT-py and fairseq. Reading runs no code."""

import argparse
import pickle
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hugging_face_files import (
    UNREADABLE,
    CheckpointFolder,
    Settings,
    is_hugging_face,
    reason_of,
)

SUFFIX = ".pt"
_MAX_LISTED = 5


def checkpoint_file(folder: CheckpointFolder) -> Path | None:
    """Return the file that was named, or the only one in the folder; None without one or in Hugging Face's layout.

    Raises `CheckpointError` for several files.
    """
    if folder.file is not None:
        return folder.path / folder.file
    if is_hugging_face(folder.path):
        return None
    files = sorted(folder.path.glob(f"[!.]*{SUFFIX}"))  # macOS adds ._model.pt on some file systems
    if len(files) > 1:
        names = " ".join([*(path.name for path in files[:_MAX_LISTED]), *["..."] * (len(files) > _MAX_LISTED)])
        raise CheckpointError(
            f"{folder.path} has {len(files)} checkpoints: {names}; name one of them, such as {files[0]}"
        )
    return files[0] if len(files) == 1 else None


def load_pickled(path: Path) -> dict[str, object]:
    """Return the content of a file: tensors, plain values and options. Raises `CheckpointError` for other objects."""
    try:
        # A namespace only holds the options; other classes stay forbidden.
        with torch.serialization.safe_globals([argparse.Namespace]):
            # Before PyTorch 1.6, in the time of most of fairseq's models, a file was no ZIP and cannot be mapped.
            is_zip = zipfile.is_zipfile(path)
            content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{path.name} contains objects other than weights and options, which are not loaded because they can run "
            f"code: {reason_of(error)}; save it again with a current version of the toolkit"
        ) from error
    except UNREADABLE as error:
        raise CheckpointError(f"{path.name}: not readable (damaged, truncated or another format): {error}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} must contain a checkpoint by names. Given: {type(content).__name__}")
    return {str(name): value for name, value in content.items()}


def options_of(path: Path, options: object) -> Settings:
    """Return options with access by type. Raises `CheckpointError` unless they are a namespace or a mapping."""
    if isinstance(options, argparse.Namespace):
        return Settings(path.name, dict(vars(options)))
    if isinstance(options, Mapping):
        return Settings(path.name, {str(name): value for name, value in options.items()})
    raise CheckpointError(f"{path.name}: the options must be a namespace. Given: {type(options).__name__}")


def tensors_of(path: Path, part: object, what: str) -> dict[str, Tensor]:
    """Return tensors by name. Raises `CheckpointError` for anything else."""
    if not isinstance(part, Mapping) or not all(isinstance(value, Tensor) for value in part.values()):
        raise CheckpointError(f"{path.name}: `{what}` must contain weights by name")
    return {str(name): value.float() for name, value in part.items()}


def without_equal_tables(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors by our names without tables that are equal to others: the configuration ties them."""
    kept = dict(tensors)
    names = ("encoder.embedding.weight", "decoder.embedding.weight", "output_projection.weight")
    for first, second in pairwise(names):
        if first in tensors and second in tensors and torch.equal(tensors[first], tensors[second]):
            del kept[second]
    return kept
