from pathlib import Path

import pytest
import torch

from bundle.loading import Bundle, load_bundle
from bundle.tensors import Precision
from export.exporter import export_bundle
from tests.export.tiny_checkpoint import write_checkpoint
from tests.made_once import made_once


@pytest.fixture(autouse=True)
def _one_thread_and_a_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(20170612)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete tiny checkpoint; tests copy it before they change it."""
    return made_once(tmp_path_factory, "checkpoint", lambda to: write_checkpoint(to / "tiny-en-de")) / "tiny-en-de"


def _bundle(checkpoint: Path, precision: Precision, factory: pytest.TempPathFactory) -> Bundle:
    """Return the bundle of a precision; tests copy it before they change it."""
    return load_bundle(
        made_once(factory, precision, lambda to: export_bundle(checkpoint, to / "tiny", precision)) / "tiny"
    )


@pytest.fixture(scope="session")
def float32_bundle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return _bundle(checkpoint, "float32", tmp_path_factory)


@pytest.fixture(scope="session")
def float16_bundle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return _bundle(checkpoint, "float16", tmp_path_factory)


@pytest.fixture(scope="session")
def int8_bundle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return _bundle(checkpoint, "int8", tmp_path_factory)
