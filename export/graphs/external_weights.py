"""Weights of large graphs in a file of their own, which ONNX Runtime maps into memory.

All processes that run a bundle then share one copy of its weights, in the page cache of the system. Tables that encoder
and decoder have in common are in one file only.
"""

from collections.abc import Iterator
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

    Weights that another graph of the folder has are not written again. Each tensor is freed as soon as it is written,
    so that no second copy of all weights exists.
    """
    large = [tensor for tensor in model.graph.initializer if len(tensor.raw_data) >= _MIN_TENSOR_BYTES]
    if sum(len(tensor.raw_data) for tensor in large) >= _MIN_TOTAL_BYTES:
        written = [_Written(each) for each in sorted(file.parent.glob("*.onnx")) if each != file]
        weights = file.with_suffix(WEIGHTS_SUFFIX)
        with weights.open("wb") as stream:
            for tensor in large:
                if not any(graph.refers(tensor) for graph in written):
                    stream.write(b"\0" * (-stream.tell() % _ALIGNMENT))
                    _refer(tensor, weights.name, stream.tell())
                    stream.write(tensor.raw_data)
                tensor.ClearField("raw_data")
        if not weights.stat().st_size:
            weights.unlink()
    onnx.save(model, file)


class _Written:
    """The external weights of a graph on disk."""

    def __init__(self, file: Path) -> None:
        self._folder = file.parent
        graph = onnx.load(file, load_external_data=False).graph
        self._tensors = [{each.key: each.value for each in tensor.external_data} for tensor in graph.initializer]

    def refers(self, tensor: TensorProto) -> bool:
        """Let a tensor refer to equal bytes of this graph, and return whether there are any."""
        for location, offset in self._of_length(len(tensor.raw_data)):
            with (self._folder / location).open("rb") as stream:
                stream.seek(offset)
                is_equal = _begins_with(stream, tensor.raw_data)
            if is_equal:
                _refer(tensor, location, offset)
                return True
        return False

    def _of_length(self, length: int) -> Iterator[tuple[str, int]]:
        for tensor in self._tensors:
            if tensor.get("length") == str(length):
                yield tensor["location"], int(tensor["offset"])


def _begins_with(stream: BinaryIO, content: bytes) -> bool:
    # In blocks: both can be hundreds of megabytes.
    blocks = range(0, len(content), _BLOCK_BYTES)
    return all(stream.read(len(block := content[start : start + _BLOCK_BYTES])) == block for start in blocks)


def _refer(tensor: TensorProto, location: str, offset: int) -> None:
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", offset), ("length", len(tensor.raw_data))):
        tensor.external_data.add(key=key, value=str(value))
