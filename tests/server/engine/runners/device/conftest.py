"""One random model in both layouts, for the CPU runner and for the device runner."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from bundle import tensors as names
from bundle.loading import Bundle
from export.exporter import describe_bundle, export_decoder, export_encoder
from export.graphs.parts_layout import export_parts
from model.checkpoints.checkpoint import Checkpoint
from model.checkpoints.weights import build_model
from model.families.own import read_own_model
from model.families.registry import read_checkpoint
from tests.end_to_end.exported import write_own_model
from tests.made_once import made_once
from tests.model.families.random_families import random_model


@dataclass(frozen=True, slots=True)
class Layouts:
    """Bundles with equal weights; only `half` rounds them. A recurrent model has none."""

    step: Bundle
    parts: Bundle
    half: Bundle


@pytest.fixture(scope="session")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> Layouts:
    folder = made_once(tmp_path_factory, "layouts", lambda to: _export(_marian(to), to))
    return _described(_marian(folder), folder)


@pytest.fixture(scope="session")
def recurrent_layouts(tmp_path_factory: pytest.TempPathFactory) -> Layouts:
    """A model whose decoder is recurrent, and whose states are wider than its hidden states."""
    folder = made_once(tmp_path_factory, "recurrent-layouts", lambda to: _export(_recurrent(to), to))
    return _described(_recurrent(folder), folder)


def _marian(folder: Path) -> Checkpoint:
    if not (folder / "checkpoint").exists():
        random_model("marian", 1, 3, folder / "checkpoint")
    return read_checkpoint(folder / "checkpoint")


def _recurrent(folder: Path) -> Checkpoint:
    written = folder / "checkpoint"
    if not written.exists():
        write_own_model(written, {"num_heads": 3, "d_model": 36, "num_encoder_layers": 1})
    return read_own_model(written / "model.json", written / "model.safetensors")


def _described(checkpoint: Checkpoint, folder: Path) -> Layouts:
    def bundle(precision: names.Precision, name: str) -> Bundle:
        return Bundle(folder / name, describe_bundle(checkpoint, folder / name, precision, name, 1))

    return Layouts(bundle("float32", "step"), bundle("float32", "parts"), bundle("float16", "half"))


def _export(checkpoint: Checkpoint, folder: Path) -> None:
    model = build_model(checkpoint)
    for name in ("step", "parts", "half"):
        (folder / name).mkdir()
    export_encoder(model, folder / "step" / names.ENCODER_FILE, "float32")
    export_decoder(model, folder / "step" / names.DECODER_FILE, "float32")
    export_parts(model, folder / "parts", torch.float32)
    if not checkpoint.config.has_recurrent_decoder:
        export_parts(build_model(checkpoint), folder / "half", torch.float16)
