import gzip
import io
import os
import random
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from library.home import Home
from library.pull import PullOptions, pull
from model.checkpoints import archives
from model.checkpoints.archives import extract, is_archive
from model.checkpoints.checkpoint import CheckpointError
from model.checkpoints.hugging_face_files import find_checkpoint

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def _zip(path: Path, files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return path


def _tar(path: Path, files: dict[str, bytes], links: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as packed:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            packed.addfile(entry, io.BytesIO(content))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            packed.addfile(entry)
    return path


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_are_extracted_and_the_only_folder_is_the_model(tmp_path: Path) -> None:
    files = {"m/config.json": b"{}", "m/sub/a.spm": b"pieces"}
    for archive in (_zip(tmp_path / "a.argosmodel", files), _tar(tmp_path / "a.tar.gz", files, {})):
        folder = extract(archive, tmp_path / archive.name.replace(".", "-"))
        assert folder.name == "m"
        assert _content(folder) == {"config.json": b"{}", "sub/a.spm": b"pieces"}


def test_links_are_left_out(tmp_path: Path) -> None:
    archive = _tar(tmp_path / "a.tar.gz", {"config.json": b"{}"}, {"secret": "/etc/passwd"})
    assert _content(extract(archive, tmp_path / "out")) == {"config.json": b"{}"}


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../../out.txt", "c:/out.txt", "..\\out.txt"])
def test_a_path_out_of_the_folder_is_rejected_before_it_is_written(tmp_path: Path, name: str) -> None:
    for archive in (_zip(tmp_path / "a.zip", {name: b"x"}), _tar(tmp_path / "a.tar.gz", {name: b"x"}, {})):
        with pytest.raises(ValueError, match="leads out of its folder"):
            extract(archive, tmp_path / "inner" / "out")
    assert not list(tmp_path.rglob("out.txt"))


def test_an_archive_that_expands_too_much_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MIN_LIMIT_BYTES", 100_000)
    archive = _zip(tmp_path / "a.zip", {"zeros": bytes(20_000_000)})
    with pytest.raises(ValueError, match="must extract to at most"):
        extract(archive, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_too_many_files_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    with pytest.raises(ValueError, match="at most 3 files"):
        extract(_zip(tmp_path / "a.zip", {str(number): b"" for number in range(4)}), tmp_path / "out")
    monkeypatch.setattr(archives, "MAX_ENTRIES", 3)
    with pytest.raises(ValueError, match="at most 3 entries"):
        extract(_tar(tmp_path / "a.tar.gz", {}, {str(number): "x" for number in range(4)}), tmp_path / "out")


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_damaged_archive_is_an_error_at_every_length(tmp_path: Path, kind: str) -> None:
    files = {"m/config.json": b"{}" * 500, "m/b": bytes(range(256)) * 8, "m": b"a file where a folder is"}
    whole = _zip(tmp_path / "a", files) if kind == "zip" else _tar(tmp_path / "a", files, {})
    content = whole.read_bytes()
    for index, length in enumerate(range(0, len(content), 37)):
        whole.write_bytes(content[:length])
        with pytest.raises(ValueError, match="is damaged or of another format"):
            extract(whole, tmp_path / f"out-{index}")


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".zst", zstd.compress)])
def test_a_folder_of_packed_files_is_unpacked_unless_it_is_damaged(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    content = random.Random(1).randbytes(3000)
    packed = pack(content)
    (folder / f"model.ende.bin{ending}").write_bytes(packed)
    (folder / "metadata.json").write_bytes(b"{}")
    assert is_archive(folder)
    found = extract(folder, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in found.iterdir()} == {
        "model.ende.bin": content,
        "metadata.json": b"{}",
    }
    for index, length in enumerate(range(1, len(packed), 101)):
        (folder / f"model.ende.bin{ending}").write_bytes(packed[:length])
        with pytest.raises(ValueError, match=f"model.ende.bin{ending} is damaged: "):
            extract(folder, tmp_path / f"out-{index}")
        assert not (tmp_path / f"out-{index}").exists()


@pytest.mark.parametrize("method", ["gz", "xz", zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_random_damage_to_an_archive_is_an_error_with_its_name(tmp_path: Path, method: str | int) -> None:
    choose = random.Random(0)
    archive, files = tmp_path / "a.pack", {"m/config.json": choose.randbytes(900), "m/model.bin": b"weights " * 300}
    if isinstance(method, int):
        _zip(archive, files, method)
    else:
        with tarfile.open(archive, f"w:{method}") as packed:  # type: ignore[call-overload]
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                packed.addfile(entry, io.BytesIO(content))
    whole = archive.read_bytes()
    messages: list[str] = []
    for _ in range(300):
        damaged = bytearray(whole)
        position = choose.choice([choose.randrange(len(whole)), *(choose.randrange(60) * sign for sign in (1, -1))])
        damaged[position] = choose.choice([0, 255, choose.randrange(256)])
        archive.write_bytes(damaged[: choose.choice([len(damaged), choose.randrange(len(damaged))])])
        try:
            if is_archive(archive):
                extract(archive, tmp_path / "out")
        except ValueError as error:
            messages.append(str(error))
    assert messages
    assert all(message.startswith("a.pack ") for message in messages)


@pytest.mark.parametrize("name", ["config.json", "model/model.bin"])
def test_a_pipe_in_a_checkpoint_is_named_instead_of_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "model").mkdir()
    os.mkfifo(tmp_path / name)
    with pytest.raises(CheckpointError, match=f"{name} is a pipe, not a file; replace or remove it"):
        find_checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match=f"{name} is a pipe, not a file"):
        pull(str(tmp_path), PullOptions(), Home(tmp_path / "home"))
