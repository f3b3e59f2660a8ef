"""A tiny checkpoint for the peers, and what CTranslate2's converter makes of it."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from loadtest.peers.conversions import ctranslate2_model
from tests.export.tiny_checkpoint import write_checkpoint


@dataclass(frozen=True, slots=True)
class Weights:
    """The same in two formats."""

    checkpoint: Path
    ctranslate2: Path


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    folder = tmp_path_factory.mktemp("peers")
    checkpoint = write_checkpoint(folder / "tiny", {"max_position_embeddings": 32})
    return Weights(checkpoint, ctranslate2_model(checkpoint, folder / "models"))
