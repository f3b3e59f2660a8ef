"""Limits of archives, at the limit and behind it, and the files that are rewritten and copied."""

import io
import zipfile
from collections.abc import Generator

import pytest

from server.documents.fragment import AllFragments, Fragment
from server.documents.input.archive import opened
from server.documents.input.limits import FileLimits
from server.interface.errors import DocumentTooComplex, DocumentTooLarge, InvalidDocument
from tests.server.documents.documents import packed, unpacked

_FILES = {"a.xml": b"one two", "b.bin": b"\x00" * 100_000, "c.xml": b"three", "d.xml": b"-"}
_Steps = Generator[list[Fragment], list[Fragment], bytes]


def _loud(content: bytes, _name: str, _at_once: bool) -> _Steps:
    """Rewrite the words of a file, one fragment each; a file with a dash has none."""
    words = content.decode().replace("-", "").split()
    if not words:
        return content
    translated = yield [(word,) for word in words]
    return " ".join(str(text) for (text,) in translated).encode()


def _read(content: bytes, limits: FileLimits, name: str) -> bytes:
    with opened(io.BytesIO(content), limits) as archive:
        return archive.read(name)


@pytest.mark.parametrize("max_held_bytes", [0, 13, 1000])
def test_parts_are_rewritten_and_all_other_files_copied(max_held_bytes: int) -> None:
    content, sink = packed(_FILES), io.BytesIO()
    limits = FileLimits(max_held_bytes=max_held_bytes)
    with opened(io.BytesIO(content), limits) as archive:
        steps = archive.rewrite(sink, dict.fromkeys(("a.xml", "c.xml", "d.xml"), _loud))
        fragments = next(steps)
        is_held = max_held_bytes >= 13  # bytes of the three files
        assert isinstance(fragments, AllFragments) is is_held
        num_windows = 0
        try:
            while True:
                num_windows += bool(fragments)
                fragments = steps.send([(str(text).upper(),) for (text,) in fragments])
        except StopIteration:
            pass
    assert num_windows == (1 if is_held else 2)
    assert unpacked(sink.getvalue()) == {**_FILES, "a.xml": b"ONE TWO", "c.xml": b"THREE"}
    with zipfile.ZipFile(io.BytesIO(content)) as before, zipfile.ZipFile(sink) as after:
        for old, new in zip(before.infolist(), after.infolist(), strict=True):
            assert (new.filename, new.date_time, new.compress_type) == (old.filename, old.date_time, old.compress_type)
            assert new.external_attr == old.external_attr


def test_the_limits_of_a_file_are_kept_to_the_byte() -> None:
    content = packed({"a.xml": b"<a><b/>"})
    assert _read(content, FileLimits(max_part_bytes=7, max_tags=2, max_entries=1, max_uncompressed_bytes=7), "a.xml")
    with pytest.raises(DocumentTooLarge, match=r"a.xml may have 6 bytes unpacked. It has 7"):
        _read(content, FileLimits(max_part_bytes=6), "a.xml")
    with pytest.raises(DocumentTooComplex, match=r"may have 1 tags. Given: 2"):
        _read(content, FileLimits(max_tags=1), "a.xml")
    with pytest.raises(DocumentTooLarge, match=r"may have 6 bytes unpacked. It has 7"):
        _read(content, FileLimits(max_uncompressed_bytes=6), "a.xml")
    with pytest.raises(InvalidDocument, match=r"b.xml is missing"):
        _read(content, FileLimits(), "b.xml")
    two = packed({"a": b"", "b": b""})
    with pytest.raises(DocumentTooLarge, match=r"may have 1 files. It has 2"):
        _read(two, FileLimits(max_entries=1), "a")


def test_the_ratio_of_a_large_file_is_limited() -> None:
    dense, stored = packed({"a": bytes(1_100_000)}), packed({"a": bytes(1_100_000)}, zipfile.ZIP_STORED)
    with pytest.raises(DocumentTooLarge, match="may unpack to 200 times its size"):
        _read(dense, FileLimits(), "a")
    assert len(_read(dense, FileLimits(max_ratio=2000), "a")) == 1_100_000
    assert len(_read(stored, FileLimits(max_ratio=1), "a")) == 1_100_000
    assert len(_read(packed({"a": bytes(1_000_000)}), FileLimits(), "a")) == 1_000_000
