"""Weights of large graphs in a file of their own, which ONNX Runtime maps into memory.

All processes that run a bundle then share one copy of its weights, in the page cache of the system. Tables that encoder
and decoder have in common are in one file only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import onnx
from onnx import ModelProto, TensorProto

from bundle.tensors import WEIGHTS_SUFFIX

# Smaller graphs are one file: a map of a megabyte saves nothing.
_MIN_TOTAL_BYTES: Final = 2**20
_MIN_TENSOR_BYTES: Final = 4096
# Maps begin at pages; the vectors of the native operators are read from aligned addresses sooner.
_ALIGNMENT: Final = 4096
_BLOCK_BYTES: Final = 2**20


def write_graph(model: ModelProto, file: Path) -> None:
    """Write a graph, and its weights to `file` with another suffix if they are large. The model loses those weights.

    Equal weights, of this graph or of another one in the folder, are written once. Each tensor is freed as soon as it
    is written, so that no second copy of all weights exists.
    """
    large = [tensor for tensor in model.graph.initializer if len(tensor.raw_data) >= _MIN_TENSOR_BYTES]
    if sum(len(tensor.raw_data) for tensor in large) >= _MIN_TOTAL_BYTES:
        written = [place for each in sorted(file.parent.glob("*.onnx")) if each != file for place in _places(each)]
        weights = file.with_suffix(WEIGHTS_SUFFIX)
        with weights.open("wb") as stream:
            for tensor in large:
                place = next((each for each in written if each.contains(tensor.raw_data)), None)
                if place is None:
                    stream.write(b"\0" * (-stream.tell() % _ALIGNMENT))
                    place = _Place(weights, stream.tell(), len(tensor.raw_data))
                    stream.write(tensor.raw_data)
                    stream.flush()
                    written.append(place)
                place.refer(tensor)
                tensor.ClearField("raw_data")
        if not weights.stat().st_size:
            weights.unlink()
    onnx.save(model, file)


@dataclass(frozen=True, slots=True)
class _Place:
    """A tensor in a file of weights."""

    file: Path
    offset: int
    length: int

    def contains(self, content: bytes) -> bool:
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


def _begins_with(stream: BinaryIO, content: bytes) -> bool:
    # In blocks: both can be hundreds of megabytes.
    blocks = range(0, len(content), _BLOCK_BYTES)
    return all(stream.read(len(block := content[start : start + _BLOCK_BYTES])) == block for start in blocks)
