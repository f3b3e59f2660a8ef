import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hugging_face_files import find_checkpoint, read_settings, read_weights
from model.checkpoints.weights import select_weights


def test_shards_listed_in_an_index_are_read_as_one(tmp_path: Path) -> None:
    save_file({"a": torch.ones(2)}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({"b": torch.zeros(3)}, tmp_path / "model-00002-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))

    tensors = read_weights(tmp_path).tensors

    assert tensors["a"].tolist() == [1, 1]
    assert tensors["b"].tolist() == [0, 0, 0]


def test_a_shard_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin.index.json").write_text('{"weight_map": {"a": "pytorch_model-00001.bin"}}')
    with pytest.raises(CheckpointError, match=r"pytorch_model-00001\.bin is missing; the index"):
        read_weights(tmp_path)


def test_a_shard_outside_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../other.safetensors"}}')
    with pytest.raises(CheckpointError, match="not a file of the same folder"):
        read_weights(tmp_path)


class RunsOnLoading:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("it_ran"),)


def test_pickled_weights_cannot_run_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"a": RunsOnLoading()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="not readable as weights"):
        read_weights(tmp_path)
    assert not (tmp_path / "it_ran").exists()


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_damaged_weights_are_named(tmp_path: Path, name: str) -> None:
    whole = tmp_path / "whole"
    save_file({"a": torch.ones(100)}, whole) if name.endswith("safetensors") else torch.save(
        {"a": torch.ones(9)}, whole
    )
    (tmp_path / name).write_bytes(whole.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match=f"{name}: not readable as weights"):
        read_weights(tmp_path)


@pytest.mark.parametrize("content", [b"\x80\x02h\x05.", b"\x80\x02K\x01s.", b"\x80\x02J", b"text"])
def test_damaged_pickles_are_an_error_without_the_advice_to_run_them(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(CheckpointError, match="not readable as weights") as raised:
        read_weights(tmp_path)
    assert "weights_only" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "not readable as JSON"), ("[1]", "must contain a JSON object"), (None, "is missing")],
)
def test_a_settings_file_that_is_none_is_refused(tmp_path: Path, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=message):
        read_settings(tmp_path / "config.json")


@pytest.mark.parametrize("name", ["model.safetensors", "model.npz", "pytorch_model.bin"])
def test_a_file_that_is_no_archive_is_refused_with_its_folder(tmp_path: Path, name: str) -> None:
    np.savez(tmp_path / "model.npz", weights=np.zeros(3))
    shutil.copy(tmp_path / "model.npz", tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(CheckpointError, match=f"must be an archive .* name the folder: {tmp_path}$"):
        find_checkpoint(tmp_path / name)


def test_all_that_is_wrong_with_weights_is_listed() -> None:
    shapes = {"a": torch.Size([2]), "b": torch.Size([2])}
    tensors = {"a": torch.tensor([1.0, math.nan]), "c": torch.ones(2)}
    with pytest.raises(CheckpointError) as raised:
        select_weights(shapes, tensors, "m")
    first, *kinds = str(raised.value).splitlines()
    assert first == "m: the weights do not fit their settings:"
    assert [line.strip() for line in kinds] == [
        "missing: b",
        "unexpected: c",
        "unusable: a contains NaN or infinite numbers",
    ]
