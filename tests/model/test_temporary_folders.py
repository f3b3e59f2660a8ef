import subprocess
import sys
from pathlib import Path

import pytest

from model.temporary_folders import temporary_folder

_HALF_A_MODEL = """
import pathlib, sys
from model.temporary_folders import temporary_folder
with temporary_folder(pathlib.Path(sys.argv[1]), ".half-") as folder:
    (folder / "weights").write_bytes(b"half")
    print("begun", flush=True)
    sys.stdin.read()
"""


def _begun(parent: Path) -> subprocess.Popen[str]:
    """Start a process that is writing to a temporary folder."""
    command = [sys.executable, "-c", _HALF_A_MODEL, str(parent)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def test_a_folder_is_deleted_at_the_end_and_after_an_error(tmp_path: Path) -> None:
    with temporary_folder(tmp_path, ".half-") as folder:
        (folder / "weights").write_bytes(b"half")
        (folder / "moved").mkdir()
        (folder / "moved").rename(tmp_path / "model")
    with pytest.raises(ValueError, match="wrong"), temporary_folder(tmp_path, ".half-"):
        raise ValueError("wrong")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_the_next_process_deletes_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    others = [tmp_path / ".half-of-a-user", tmp_path / ".half-file"]
    others[0].mkdir()
    others[1].write_text("mine")
    killed, running = _begun(tmp_path), _begun(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    killed.kill()
    killed.communicate()
    with temporary_folder(tmp_path, ".half-"):
        assert len(list(tmp_path.glob(".half-*/content/weights"))) == 1
    running.communicate()  # which ends its input
    assert sorted(tmp_path.iterdir()) == sorted(others)
