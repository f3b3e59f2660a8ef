"""Small `python -m benchmarks.quality.parity --family all`: odd models of every family against `generate`.

The engine runs the modules that graphs are traced from.
"""

from pathlib import Path

import pytest
import torch

from model.families.registry import read_checkpoint
from tests.fakes.eager_runner import open_eagerly
from tests.model.families.random_families import FAMILIES, compare, random_model, random_sources


# Of Marian also one without scaled embeddings, and one with two vocabularies and its own output projection.
@pytest.mark.parametrize(("index", "family"), [*enumerate(FAMILIES), (1, "marian"), (3, "marian")])
def test_random_models_of_a_family_answer_what_hugging_face_answers(index: int, family: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    model = random_model(family, index, seed=2, folder=tmp_path / "checkpoint")
    bundle, engine = open_eagerly(read_checkpoint(model.folder), tmp_path / "bundle", unknown_token_id=3)
    assert compare(model, engine, random_sources(bundle, 6, seed=2)) == 0
