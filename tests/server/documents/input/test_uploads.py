"""Copies of uploads, and folders that killed processes left behind."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.documents.input.uploads import WorkFolder, copy_upload, remove_abandoned_folders, shown_name
from server.interface.errors import DocumentTooLarge, InvalidDocument


def test_a_file_is_copied_up_to_the_limit(tmp_path: Path) -> None:
    content = bytes(range(256)) * 10_000  # more than a part of a copy
    folder = copy_upload(io.BytesIO(content), tmp_path, len(content))
    assert (folder / "source").read_bytes() == content
    with pytest.raises(DocumentTooLarge, match=f"may have {len(content) - 1} bytes"):
        copy_upload(io.BytesIO(content), tmp_path, len(content) - 1)
    with pytest.raises(InvalidDocument, match="it has 0 bytes"):
        copy_upload(io.BytesIO(), tmp_path, 10)
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.txt", "a.txt"),
        ("/x/y/a.b.txt", "a.b.txt"),
        ("C:\\x\\a.txt", "a.txt"),
        ("a\r\n\0.txt", "a.txt"),
        ("x" * 300 + ".docx", "x" * 196 + ".docx"),
    ],
)
def test_a_name_is_its_last_part(name: str, shown: str) -> None:
    assert shown_name(name) == shown


_OWNER = """
import sys
from pathlib import Path
from server.documents.input.uploads import WorkFolder
folder = WorkFolder(Path(sys.argv[1]))
(folder.path / "source").write_bytes(b"letter")
print(folder.path, flush=True)
sys.stdin.read()
"""


def test_the_folder_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    (tmp_path / "kvasir-documents-notes").mkdir()
    # Numbers of processes are used again: this one belongs to a process that lives, and the folder to none.
    (tmp_path / f"kvasir-documents-{os.getppid()}-x").mkdir()
    (tmp_path / f"kvasir-documents-{os.getpid()}-y").symlink_to(tmp_path / "kvasir-documents-notes")
    command = [sys.executable, "-c", _OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        theirs = Path(owner.stdout.readline().strip())
        ours = WorkFolder(tmp_path)
        assert (theirs / "source").exists()
        assert not (tmp_path / f"kvasir-documents-{os.getppid()}-x").exists()
        owner.kill()
        owner.wait()
    remove_abandoned_folders(tmp_path)
    assert not theirs.exists()
    assert ours.path.exists()
    ours.close()
    assert {path.name for path in tmp_path.iterdir()} == {"kvasir-documents-notes", f"kvasir-documents-{os.getpid()}-y"}
