from pathlib import Path

import pytest
import torch

from bundle.loading import Bundle
from export.exporter import export_bundle
from tests.export.tiny_checkpoint import write_checkpoint


@pytest.fixture(autouse=True)
def _one_thread_and_a_seed() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(20170612)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete tiny checkpoint; tests copy it before they change it."""
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "tiny-en-de")


@pytest.fixture(scope="session")
def float32_bundle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Tests copy it before they change it."""
    return export_bundle(checkpoint, tmp_path_factory.mktemp("float32") / "tiny", "float32")


@pytest.fixture(scope="session")
def int8_bundle(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Tests copy it before they change it."""
    return export_bundle(checkpoint, tmp_path_factory.mktemp("int8") / "tiny", "int8")
