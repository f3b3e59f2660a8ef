import random
import resource
import struct
from pathlib import Path

import pytest
import torch

from model.checkpoints.checkpoint import CheckpointError
from model.families.ctranslate2.binary import Attributes, read_variables


def _string(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"


def _variable(name: str, shape: tuple[int, ...], kind: int, content: bytes) -> bytes:
    dimensions = b"".join(struct.pack("<I", size) for size in shape)
    return _string(name) + bytes([len(shape)]) + dimensions + struct.pack("<BI", kind, len(content)) + content


def _file(*variables: bytes, version: int = 6, name: str = "TransformerSpec", revision: int = 7) -> bytes:
    head = struct.pack("<I", version) + _string(name) + struct.pack("<I", revision)
    alias = struct.pack("<I", 1) + _string("output/weight") + _string("table/weight")
    return head + struct.pack("<I", len(variables)) + b"".join(variables) + alias


TABLE = _variable("table/weight", (2, 3), 1, bytes([1, 254, 3, 127, 0, 129]))
SCALE = _variable("table/weight_scale", (2,), 0, struct.pack("<2f", 2.0, 4.0))
WHOLE = _file(TABLE, SCALE, _variable("heads", (), 2, struct.pack("<h", 8)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.bin"


@pytest.mark.parametrize("version", [5, 6])
def test_numbers_and_aliases_are_read(path: Path, version: int) -> None:
    path.write_bytes(struct.pack("<I", version) + WHOLE[4:])
    variables = read_variables(path)
    assert (variables.version, variables.revision) == (version, 7)
    attributes = Attributes(variables)
    expected = torch.tensor([[0.5, -1.0, 1.5], [31.75, 0.0, -31.75]])
    assert torch.equal(attributes.tensor("table/weight"), expected)
    assert torch.equal(attributes.tensor("output/weight"), expected)
    assert attributes.integer("heads") == 8
    assert attributes.is_quantized


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x06", "a number needs 4 bytes, and 1 are left"),
        (_file(version=4), "binary version 4 is not supported. Supported: 5 and 6; convert the model"),
        (_file(version=7), "binary version 7 is not supported. Supported: 5 and 6$"),
        (_file(name="WhisperSpec"), "specification 'WhisperSpec' is not supported. Supported: TransformerSpec"),
        (_file(revision=8), r"revision of TransformerSpec must be from 3 to 7\. Given: 8"),
        (_file(_variable("a", (2,), 0, b"1234")), r"a of shape \[2\] must have 8 bytes\. Given: 4"),
        (_file(_variable("a", (1,), 9, b"1234")), "a has numbers of unknown type 9"),
        (_file(_variable("a", (1,) * 9, 0, b"1234")), "a has 9 dimensions; at most 8"),
        (_file(_variable("a", (0, 4_000_000_000), 0, b"")), "has no values"),
        (_file(_variable("a", (2**31, 2**31), 0, b"1234")), "must have 18446744073709551616 bytes. Given: 4"),
        (_file(TABLE, TABLE), "table/weight occurs twice"),
        (_file(SCALE), "alias output/weight of table/weight contradicts"),
        (WHOLE + b"\0", "1 bytes follow the last alias"),
        (WHOLE[:30] + struct.pack("<I", 2**32 - 1) + WHOLE[34:], "do not fit into|damaged"),
    ],
)
def test_a_damaged_or_foreign_file_is_rejected_with_the_finding(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_variables(path)


def test_every_truncation_is_rejected(path: Path) -> None:
    for length in range(len(WHOLE)):
        path.write_bytes(WHOLE[:length])
        with pytest.raises(CheckpointError):
            read_variables(path)


def test_no_change_of_a_file_crashes_or_needs_more_memory_than_the_file(path: Path) -> None:
    choose = random.Random(8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    num_read = 0
    for _ in range(1000):
        content = bytearray(WHOLE)
        for _ in range(choose.randint(1, 4)):
            start = choose.randrange(len(content))
            width = choose.choice([1, 2, 4])
            content[start : start + width] = choose.choice([b"\xff", b"\0", choose.randbytes(1)]) * width
        path.write_bytes(content)
        try:
            variables = read_variables(path)
        except CheckpointError:
            continue
        num_read += 1
        for name in variables.tensors:
            try:
                Attributes(variables).tensor(name)
            except CheckpointError:
                continue
    assert num_read > 50
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes
