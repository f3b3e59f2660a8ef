"""Small `python -m benchmarks.quality.parity --family all`: odd models of every family against `generate`."""

from pathlib import Path

import pytest
import torch

from benchmarks.quality.random_families import FAMILIES, random_model
from benchmarks.quality.random_models import compare, random_sources
from benchmarks.quality.rounded_models import export_graphs


@pytest.mark.parametrize(("index", "family"), list(enumerate(FAMILIES)), ids=FAMILIES)
def test_random_models_of_a_family_answer_what_hugging_face_answers(index: int, family: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    model = random_model(family, index, seed=2, folder=tmp_path / "checkpoint")
    bundle = export_graphs(model.folder, tmp_path / "bundle", "float32")
    assert compare(model, bundle, random_sources(bundle, 20, seed=2)) == 0
