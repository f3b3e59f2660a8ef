import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bundle.manifest import BundleError, Shapes
from bundle.shortlist import Shortlist, read_shortlist

SHAPES = Shapes(
    vocab_size=50,
    target_vocab_size=60,
    d_model=8,
    num_encoder_layers=1,
    num_decoder_layers=1,
    num_heads=1,
    head_dim=8,
    max_source_tokens=16,
    max_target_tokens=16,
)
LISTS = [[], [59, 3, 40], [41], *([[]] * 5), [40, 42]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lex.bin"
    path.write_bytes(Shortlist.of_lists(4, LISTS).to_bytes())
    return path


def test_a_shortlist_is_read_as_it_was_written(file: Path) -> None:
    found = read_shortlist(file, SHAPES)
    assert (found.num_first, found.max_listed) == (4, 3)
    ends = found.offsets.tolist()
    assert [found.tokens[start:end].tolist() for start, end in pairwise(ends)] == LISTS


def test_the_layout_is_that_of_the_published_files() -> None:
    content = Shortlist.of_lists(2, [[7], [5, 6]]).to_bytes()
    header = struct.unpack_from("<6Q3Q", content)
    assert header[0] == 0xF11A48D5013417F5
    # Two first tokens, at most two a list, three offsets, three tokens; then the offsets.
    assert header[2:] == (2, 2, 3, 3, 0, 1, 3)
    assert np.frombuffer(content[72:], "<u4").tolist() == [7, 5, 6]
    # Whole words only: the last token does not count.
    checksum = 0
    for word in (2, 2, 3, 3, 0, 1, 3, 7 + (5 << 32)):
        checksum ^= (word + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)) % 2**64
    assert header[1] == checksum


def _with(content: bytes, offset: int, value: int) -> bytes:
    return content[:offset] + struct.pack("<Q", value) + content[offset + 8 :]


@pytest.mark.parametrize(
    ("damage", "finding"),
    [
        (lambda content: content[:40], "at least 48 bytes. Given: 40"),
        (lambda content: b"text" + content[4:], "not a binary shortlist"),
        (lambda content: content[:-4], "truncated or damaged"),
        (lambda content: _with(content, 32, 2**61), "truncated or damaged"),
        (lambda content: content[:60] + b"\1" + content[61:], "checksum"),
    ],
)
def test_a_damaged_file_is_rejected_with_the_finding(file: Path, damage: object, finding: str) -> None:
    assert callable(damage)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(BundleError, match=finding):
        read_shortlist(file, SHAPES)


@pytest.mark.parametrize(
    ("shortlist", "finding"),
    [
        (Shortlist.of_lists(4, [[60]]), "below 60. Given: 60"),
        (Shortlist.of_lists(4, [[1]] * 51), "51 source tokens; the model has 50"),
        (Shortlist.of_lists(4, []), "0 source tokens"),
        (Shortlist(4, 1, np.array([0, 2, 1, 3], np.uint64), np.array([1, 2, 3], np.uint32)), "ascend"),
        (Shortlist(4, 1, np.array([0, 1, 2], np.uint64), np.array([1, 2, 3], np.uint32)), "ascend from 0 to 3"),
    ],
)
def test_lists_that_do_not_fit_the_model_are_rejected(file: Path, shortlist: Shortlist, finding: str) -> None:
    file.write_bytes(shortlist.to_bytes())
    for verify_checksum in (True, False):
        with pytest.raises(BundleError, match=finding):
            read_shortlist(file, SHAPES, verify_checksum=verify_checksum)
