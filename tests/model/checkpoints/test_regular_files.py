import os
from pathlib import Path

import pytest

from library.home import Home
from library.pull import PullOptions, pull
from model.checkpoints.archives import require_files
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hugging_face_files import find_checkpoint, read_weight_file


@pytest.mark.parametrize("name", ["config.json", "model/model.bin"])
def test_a_pipe_in_a_checkpoint_is_named_instead_of_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "model").mkdir()
    os.mkfifo(tmp_path / name)
    with pytest.raises(CheckpointError, match=f"{name} is a pipe, not a file; replace or remove it"):
        find_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=f"{name} is a pipe, not a file"):
        pull(str(tmp_path), PullOptions(), Home(tmp_path / "home"))


def test_a_pipe_and_a_device_in_the_place_of_a_checkpoint_are_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    for read in (find_checkpoint, read_weight_file):
        with pytest.raises(CheckpointError, match=r"model\.safetensors is a pipe, not a file"):
            read(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="/dev/zero is a device, not a file"):
        find_checkpoint("/dev/zero")


def test_files_folders_and_broken_links_are_left_to_their_readers(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "README.md").symlink_to("missing")
    require_files(tmp_path)
    require_files(tmp_path / "missing")
