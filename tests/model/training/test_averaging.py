from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from model.training.trainer import average_weights


def test_the_average_is_the_mean_of_each_weight(tmp_path: Path) -> None:
    snapshots = [{"a": torch.randn(3, 4), "b": torch.randn(5)} for _ in range(3)]
    for number, weights in enumerate(snapshots):
        save_file(weights, tmp_path / f"{number}.safetensors")
    averaged = average_weights(sorted(tmp_path.iterdir()))
    assert set(averaged) == {"a", "b"}
    for name, tensor in averaged.items():
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor, torch.stack([weights[name] for weights in snapshots]).mean(dim=0))


def test_the_average_of_one_snapshot_is_that_snapshot(tmp_path: Path) -> None:
    save_file({"a": (weight := torch.randn(7))}, tmp_path / "1.safetensors")
    assert torch.equal(average_weights([tmp_path / "1.safetensors"])["a"], weight)


def test_there_is_no_average_of_nothing() -> None:
    with pytest.raises(ValueError, match="no snapshots"):
        average_weights([])
