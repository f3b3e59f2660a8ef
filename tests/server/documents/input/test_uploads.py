import io
from pathlib import Path

import pytest

from server.documents.input.uploads import copy_upload, shown_name
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
        ("none", "none"),
        (".txt", ".txt"),
        ("", ""),
    ],
)
def test_a_name_is_its_last_part(name: str, shown: str) -> None:
    assert shown_name(name) == shown
