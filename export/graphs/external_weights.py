"""Weights of large graphs in a file of their own, which ONNX Runtime maps into memory.

All processes that run a bundle then share one copy of its weights, in the page cache of the system. Tables that encoder
and decoder have in common are in one file only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, numpy_helper

from bundle.tensors import WEIGHTS_SUFFIX

Weights = dict[str, NDArray[np.generic]]  # by the names of constants

# Smaller ones are copied into the graph while it is traced.
MIN_DEFERRED_BYTES: Final = 2**20
# Smaller graphs are one file: a map of a megabyte saves nothing.
_MIN_TOTAL_BYTES: Final = 2**20
_MIN_TENSOR_BYTES: Final = 4096
# Maps begin at pages; the vectors of the native operators are read from aligned addresses sooner.
_ALIGNMENT: Final = 4096
_BLOCK_BYTES: Final = 2**20


def write_graph(model: ModelProto, file: Path, weights: Weights | None = None) -> None:
    """Write a graph, and its weights to `file` with another suffix if they are large. The model loses those weights.

    `weights` are those that the graph only names. Equal weights, of this graph or of another one in the folder, are
    written once. Each tensor leaves the graph or `weights` as soon as it is written.
    """
    named = weights or {}
    sizes = {tensor.name: _num_bytes(tensor, named) for tensor in model.graph.initializer}
    large = [tensor for tensor in model.graph.initializer if sizes[tensor.name] >= _MIN_TENSOR_BYTES]
    if sum(sizes[tensor.name] for tensor in large) < _MIN_TOTAL_BYTES:
        large = []
    apart = {tensor.name for tensor in large}
    for tensor in model.graph.initializer:
        if tensor.name in named and tensor.name not in apart:
            tensor.CopyFrom(numpy_helper.from_array(named[tensor.name], tensor.name))
    if large:
        written = [place for each in sorted(file.parent.glob("*.onnx")) if each != file for place in _places(each)]
        file_of_weights = file.with_suffix(WEIGHTS_SUFFIX)
        with file_of_weights.open("wb") as stream:
            for tensor in large:
                content = _bytes(named[tensor.name]) if tensor.name in named else tensor.raw_data
                place = next((each for each in written if each.contains(content)), None)
                if place is None:
                    stream.write(b"\0" * (-stream.tell() % _ALIGNMENT))
                    place = _Place(file_of_weights, stream.tell(), len(content))
                    stream.write(content)
                    stream.flush()
                    written.append(place)
                place.refer(tensor)
                tensor.ClearField("raw_data")
                named.pop(tensor.name, None)
        if not file_of_weights.stat().st_size:
            file_of_weights.unlink()
    onnx.save(model, file)


def _bytes(array: NDArray[np.generic]) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B")


def _num_bytes(tensor: TensorProto, named: Weights) -> int:
    return named[tensor.name].nbytes if tensor.name in named else len(tensor.raw_data)


@dataclass(frozen=True, slots=True)
class _Place:
    """A tensor in a file of weights."""

    file: Path
    offset: int
    length: int

    def contains(self, content: bytes | memoryview) -> bool:
        """Return whether the tensor consists of these bytes."""
        if self.length != len(content):
            return False
        with self.file.open("rb") as stream:
            stream.seek(self.offset)
            return _begins_with(stream, content)

    def refer(self, tensor: TensorProto) -> None:
        """Let a tensor of a graph in the same folder be this one."""
        tensor.data_location = TensorProto.EXTERNAL
        del tensor.external_data[:]
        for key, value in (("location", self.file.name), ("offset", self.offset), ("length", self.length)):
            tensor.external_data.add(key=key, value=str(value))


def _places(file: Path) -> Iterator[_Place]:
    """Find the external weights of a graph on disk."""
    for tensor in onnx.load(file, load_external_data=False).graph.initializer:
        values = {each.key: each.value for each in tensor.external_data}
        if values:
            yield _Place(file.parent / values["location"], int(values["offset"]), int(values["length"]))


def _begins_with(stream: BinaryIO, content: bytes | memoryview) -> bool:
    # In blocks: both can be hundreds of megabytes.
    blocks = range(0, len(content), _BLOCK_BYTES)
    return all(stream.read(len(block := content[start : start + _BLOCK_BYTES])) == block for start in blocks)
