"""One random model in both layouts, for the CPU runner and for the device runner."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from benchmarks.quality.random_models import random_marian
from bundle import tensors as names
from bundle.loading import Bundle
from export.bundle_description import describe_bundle
from export.exporter import export_decoder, export_encoder
from export.graphs.parts_export import export_parts
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.weights import build_model
from model.families.registry import read_checkpoint


@dataclass(frozen=True, slots=True)
class Layouts:
    """Three bundles with equal weights; only `half` rounds them."""

    step: Bundle
    parts: Bundle
    half: Bundle


@pytest.fixture(scope="session")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> Layouts:
    folder = tmp_path_factory.mktemp("layouts")
    checkpoint = read_checkpoint(random_marian(1, 2, folder / "checkpoint").folder)
    model = build_model(checkpoint)
    (folder / "step").mkdir()
    export_encoder(model, folder / "step" / names.ENCODER_FILE, "float32")
    export_decoder(model, folder / "step" / names.DECODER_FILE, "float32")
    return Layouts(
        Bundle(folder / "step", describe_bundle(checkpoint, folder / "step", "float32", "step", 1)),
        _parts(checkpoint, folder / "parts", "float32", torch.float32),
        _parts(checkpoint, folder / "half", "float16", torch.float16),
    )


def _parts(checkpoint: Checkpoint, folder: Path, precision: names.Precision, dtype: torch.dtype) -> Bundle:
    folder.mkdir()
    export_parts(build_model(checkpoint), folder, dtype)
    return Bundle(folder, describe_bundle(checkpoint, folder, precision, folder.name, 1))
