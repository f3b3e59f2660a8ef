"""Parallel text for small trainings."""

from pathlib import Path

import pytest

from tests.model.training.toy_runs import write_reversed


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To train on."""
    return write_reversed(tmp_path_factory.mktemp("data") / "train.tsv", 900, seed=1, longest=4)


@pytest.fixture(scope="module")
def unseen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To measure on."""
    return write_reversed(tmp_path_factory.mktemp("data") / "unseen.tsv", 40, seed=2, longest=4)
