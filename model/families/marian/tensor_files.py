"""Files of Marian's own weights: `.npz`, and the binary format `.bin` with float32 or intgemm numbers.

Binary format (marian-dev, src/common/binary.cpp): the version, the number of tensors, four numbers a tensor (length of
its name, type, number of dimensions, bytes), names that end with NUL, dimensions (int32), the number of bytes to skip,
and the contents. All other numbers are uint64. A content can have padding at its end.
"""

import hashlib
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import Final

import numpy as np
from numpy.typing import NDArray

from model.checkpoints.archives import MAX_RATIO, MIN_LIMIT_BYTES
from model.checkpoints.checkpoint import CheckpointError

DESCRIPTION: Final = "special:model.yml"
BINARY_VERSION: Final = 1
_HEADER: Final = struct.Struct("<QQQQ")
_NUMBER: Final = struct.Struct("<Q")
_SCALE: Final = struct.Struct("<f")
_MAX_TENSORS: Final = 100_000
_MAX_NAME: Final = 1 << 16
_MAX_DIMENSIONS: Final = 8
# TypeClass and size of an element (src/common/types.h).
_TYPES: Final[Mapping[int, str]] = {0x0101: "<i1", 0x0402: "<f2", 0x0404: "<f4", 0x0408: "<f8"}
_INTGEMM: Final[Mapping[int, str]] = {0x4101: "<i1", 0x4102: "<i2"}
# Intgemm weights are stored transposed, tables of embeddings are not (src/tensors/cpu/expression_graph_packable.h).
_TABLE: Final = "Wemb"
# NumPy reads the header of an array with `tokenize`, whose error is no ValueError.
_DAMAGES: Final = (
    struct.error,
    IndexError,
    zipfile.BadZipFile,
    EOFError,
    OSError,
    ValueError,
    TypeError,
    MemoryError,
    TokenError,
)


@dataclass(frozen=True, slots=True)
class StoredTensors:
    """Tensors by Marian's names in float32, and the description of the model, YAML."""

    tensors: dict[str, NDArray[np.float32]]
    description: str
    sha256: str
    is_quantized: bool


def is_marian_file(path: Path) -> bool:
    """Return whether a file has weights in one of the two formats, and their description."""
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return f"{DESCRIPTION}.npy" in archive.namelist()
        with path.open("rb") as stream:
            return _is_binary(stream.read(_MAX_NAME + 64 * _HEADER.size))
    except (OSError, zipfile.BadZipFile):
        return False


def _is_binary(beginning: bytes) -> bool:
    if len(beginning) < 2 * _NUMBER.size + _HEADER.size:
        return False
    version, num_tensors, name_length, _, num_dimensions, _ = struct.unpack_from("<6Q", beginning)
    return bool(
        version < 16
        and 0 < num_tensors <= _MAX_TENSORS
        and 1 < name_length < _MAX_NAME
        and num_dimensions <= _MAX_DIMENSIONS
    )


def read_tensors(path: Path) -> StoredTensors:
    """Read a file. Raises `CheckpointError` with the finding if it is damaged or of an unsupported layout."""
    try:
        content = path.read_bytes()
        entries = _npz_entries(path) if path.suffix == ".npz" else _binary_entries(content)
        stored = {name: (tensor, quantized) for name, tensor, quantized in entries}
        tensors = {name: tensor.astype(np.float32) for name, (tensor, _) in stored.items() if name != DESCRIPTION}
    except _DAMAGES as error:
        raise CheckpointError(f"{path.name} is damaged: {error}") from error
    if DESCRIPTION not in stored:
        raise CheckpointError(f"{path.name} has no {DESCRIPTION}, the description of the model")
    description = stored.pop(DESCRIPTION)[0].tobytes().rstrip(b"\0")
    try:
        text = description.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path.name}: {DESCRIPTION} is damaged: {error}") from error
    return StoredTensors(
        tensors,
        text,
        hashlib.sha256(content).hexdigest(),
        any(quantized for _, quantized in stored.values()),
    )


def _npz_entries(path: Path) -> Iterator[tuple[str, NDArray[np.generic], bool]]:
    with zipfile.ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > max(MIN_LIMIT_BYTES, MAX_RATIO * path.stat().st_size):
        raise ValueError(f"its arrays have {size} bytes, too many for a file of {path.stat().st_size}")
    with np.load(path, allow_pickle=False) as stored:
        for name in stored.files:
            yield name, stored[name], False


def _binary_entries(content: bytes) -> Iterator[tuple[str, NDArray[np.generic], bool]]:
    version, num_tensors = struct.unpack_from("<QQ", content)
    if version != BINARY_VERSION:
        raise CheckpointError(f"the binary version must be {BINARY_VERSION}. Given: {version}")
    if num_tensors > _MAX_TENSORS:
        raise ValueError(f"{num_tensors} tensors")
    position = 2 * _NUMBER.size
    headers = [_HEADER.unpack_from(content, position + index * _HEADER.size) for index in range(num_tensors)]
    position += num_tensors * _HEADER.size
    names: list[str] = []
    for length, *_ in headers:
        names.append(_slice(content, position, length).rstrip(b"\0").decode("utf-8"))
        position += length
    shapes: list[tuple[int, ...]] = []
    for name, (_, _, num_dimensions, _) in zip(names, headers, strict=True):
        if num_dimensions > _MAX_DIMENSIONS:
            raise ValueError(f"{name} has {num_dimensions} dimensions")
        shapes.append(struct.unpack_from(f"<{num_dimensions}i", content, position))
        position += 4 * num_dimensions
    position += _NUMBER.size + _NUMBER.unpack_from(content, position)[0]
    for name, shape, (_, kind, _, num_bytes) in zip(names, shapes, headers, strict=True):
        if min(shape, default=1) < 0:
            raise ValueError(f"{name} has the shape {list(shape)}")
        yield name, _tensor(name, kind, shape, _slice(content, position, num_bytes)), kind in _INTGEMM
        position += num_bytes


def _slice(content: bytes, position: int, length: int) -> bytes:
    if position + length > len(content):
        raise ValueError(f"it ends after {len(content)} bytes, {position + length} are needed")
    return content[position : position + length]


def _tensor(name: str, kind: int, shape: tuple[int, ...], content: bytes) -> NDArray[np.generic]:
    size = math.prod(shape)
    if kind in _TYPES:
        stored: NDArray[np.generic] = np.frombuffer(content, _TYPES[kind], size)
        return stored.reshape(shape)
    if kind not in _INTGEMM:
        raise CheckpointError(
            f"{name} has the type {kind:#06x}; supported are float, int8, and intgemm numbers for all processors"
        )
    values: NDArray[np.signedinteger] = np.frombuffer(content, _INTGEMM[kind], size)
    (multiplier,) = _SCALE.unpack_from(content, values.nbytes)
    if not 0 < multiplier < math.inf:
        raise ValueError(f"{name} has the multiplier {multiplier}")
    matrix = values.reshape(shape) if _TABLE in name else values.reshape(shape[::-1]).T
    # In float64, so that all weights are rounded from multiples of one step.
    return (matrix / np.float64(multiplier)).astype(np.float32)
