"""Small `python -m benchmarks.quality.random_models`: odd models, exported, decoded in batches, against `generate`."""

from pathlib import Path

import pytest
import torch

from benchmarks.quality.random_models import compare, random_marian, random_sources
from benchmarks.quality.rounded_models import export_graphs


@pytest.mark.parametrize("index", [0, 1, 7], ids=["tied, no forced end", "unscaled", "untied, two vocabularies"])
def test_random_models_answer_what_hugging_face_answers(index: int, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    marian = random_marian(index, seed=1, folder=tmp_path / "checkpoint")
    bundle = export_graphs(marian.folder, tmp_path / "bundle", "float32")
    assert compare(marian, bundle, random_sources(bundle, 24, seed=2)) == 0, str(marian)
