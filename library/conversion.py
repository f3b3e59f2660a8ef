"""Conversion of a downloaded checkpoint into a bundle; imports torch."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bundle.loading import Bundle
from bundle.tensors import Precision
from export.exporter import export_bundle
from library.copying import add_copying
from model.checkpoints.hugging_face_files import CheckpointFolder


def convert(
    checkpoint: Path,
    origin: str,
    folder: Path,
    precision: Precision,
    name: str,
    languages: tuple[Sequence[str], Sequence[str]],
    report: Callable[[str], None],
) -> Bundle:
    """Export a checkpoint whose origin is written into the bundle. `languages` are those of source and target."""
    bundle = export_bundle(CheckpointFolder(checkpoint, origin), folder, precision, name, report, *languages)
    return add_copying(bundle, report)
