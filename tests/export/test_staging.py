import signal
import subprocess
import sys
from pathlib import Path

import pytest

from export.checks import ExportError
from export.staging import name_of, require_empty, staged


@pytest.mark.parametrize("name", ["new/bundle", "there", "link", "."])
def test_files_appear_at_the_end_in_a_new_folder_and_in_one_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    monkeypatch.chdir(tmp_path / "there" if name == "." else tmp_path)
    folder = Path(name)
    inode = folder.stat().st_ino if folder.exists() else None
    with staged(folder) as staging:
        (staging / "bundle.json").write_text("{}")
        (staging / "encoder.onnx").write_bytes(b"graph")
        assert not (folder / "bundle.json").exists()
    assert sorted(path.name for path in folder.iterdir()) == ["bundle.json", "encoder.onnx"]
    assert inode in (None, folder.stat().st_ino)
    assert name_of(folder) == {"new/bundle": "bundle", ".": "there"}.get(name, name)
    with pytest.raises(ExportError, match=r"is not empty, it contains bundle\.json; remove it"):
        require_empty(folder)


def _fail(folder: Path) -> None:
    with staged(folder) as staging:
        (staging / "bundle.json").write_text("{}")
        raise OSError("full")


def _stage(folder: Path, *names: str) -> None:
    with staged(folder) as staging:
        for name in names:
            (staging / name).write_bytes(b"new")


def _stage_twice(folder: Path) -> None:
    with staged(folder) as staging:
        (staging / "encoder.onnx").write_bytes(b"old")
        _stage(folder, "bundle.json", "encoder.onnx")


@pytest.mark.parametrize("is_there", [False, True])
def test_the_second_of_two_exports_to_one_folder_leaves_the_first(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / "bundle"
    if is_there:
        folder.mkdir()
    with pytest.raises(ExportError, match=r"another process has written to .*bundle meanwhile"):
        _stage_twice(folder)
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert contents == {"bundle.json": b"new", "encoder.onnx": b"new"}
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_folder_of_a_running_export_is_not_offered_for_removal(tmp_path: Path) -> None:
    with staged(tmp_path) as staging:
        with pytest.raises(ExportError, match=r"another process exports to .*; wait for its end"):
            require_empty(tmp_path)
        assert staging.is_dir()


def test_what_a_killed_export_left_in_the_folder_is_deleted(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, signal, sys\n"
        "from export.staging import staged\n"
        "with staged(pathlib.Path(sys.argv[1])) as staging:\n"
        "    (staging / 'encoder.onnx').write_bytes(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", script, tmp_path], check=False).returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 1
    require_empty(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    for folder in (tmp_path / "new", tmp_path):
        with pytest.raises(OSError, match="full"):
            _fail(folder)
        assert not list(tmp_path.iterdir())
