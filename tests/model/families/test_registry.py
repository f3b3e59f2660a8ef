import json
import math
from pathlib import Path

import pytest
import torch

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.weights import build_model, parameter_shapes, select_weights
from model.families.registry import read_checkpoint
from tests.model.random_models import save_marian


def test_the_family_of_a_checkpoint_is_read_from_its_config(tmp_path: Path) -> None:
    assert read_checkpoint(save_marian(tmp_path, {}).folder).provenance.family == "marian"


def test_an_unknown_family_is_rejected_with_the_families_that_are_supported(tmp_path: Path) -> None:
    config = {"model_type": "bert", "architectures": ["BertModel"]}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CheckpointError) as raised:
        read_checkpoint(tmp_path)
    assert str(raised.value) == (
        "config.json: the model family is not supported. Supported: marian, bart, mbart, m2m100, pegasus, t5. "
        'Given: `model_type` "bert", `architectures` ["BertModel"]'
    )


def test_a_checkpoint_has_one_weight_for_each_parameter_of_its_model(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(save_marian(tmp_path, {"tie_word_embeddings": False}).folder)
    model = build_model(checkpoint)
    assert {name: weight.shape for name, weight in model.named_parameters()} == parameter_shapes(checkpoint.config)
    for name, weight in model.named_parameters():
        assert torch.equal(weight, checkpoint.weights[name]), name


@pytest.mark.parametrize(
    ("tensor", "problem"),
    [
        (torch.tensor([1.0, math.nan]), "a contains NaN or infinite numbers"),
        (torch.tensor([-math.inf, 1.0]).half(), "a contains NaN or infinite numbers"),
        (torch.tensor([1, 2]), r"a has torch.int64 values \(torch.strided\), not floating-point numbers"),
        (torch.ones(2).to_sparse(), r"a has torch.float32 values \(torch.sparse_coo\), not"),
        (torch.ones(2, device="meta"), r"a has torch.float32 values \(none\), not"),
    ],
)
def test_a_tensor_that_cannot_be_a_weight_is_named(tensor: torch.Tensor, problem: str) -> None:
    with pytest.raises(CheckpointError, match=f"unusable: {problem}"):
        select_weights({"a": torch.Size([2])}, {"a": tensor}, "model")


def test_files_that_are_pointers_of_git_lfs_are_named(tmp_path: Path) -> None:
    folder = save_marian(tmp_path, {}).folder
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(CheckpointError, match=r"pointers of Git LFS: model.safetensors; get their contents"):
        read_checkpoint(folder)
