"""A tiny checkpoint for the other servers, also converted for CTranslate2."""

from dataclasses import dataclass
from pathlib import Path

import ctranslate2
import pytest

from tests.export.tiny_checkpoint import write_checkpoint


@dataclass(frozen=True, slots=True)
class Weights:
    """One model in two formats."""

    checkpoint: Path
    ctranslate2: Path


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    folder = tmp_path_factory.mktemp("peers")
    checkpoint = write_checkpoint(folder / "tiny", {"max_position_embeddings": 32})
    converted = folder / "converted"
    # The converter's command line would take five seconds for imports that the tests have made already.
    ctranslate2.converters.TransformersConverter(str(checkpoint)).convert(str(converted), quantization="int8")
    return Weights(checkpoint, converted)
