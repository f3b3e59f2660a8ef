"""Multiply-adds that the graphs of an int8 bundle need, from their weights."""

from math import prod
from pathlib import Path

import onnx

from bundle.loading import Bundle
from bundle.tensors import DECODER_FILE, ENCODER_FILE

_DOMAIN = "kvasir"
# Whole rows of logits, on request; rows of the vocabulary, which are read and not multiplied.
_NO_WORK = ("LinearOfSome", "EmbedTokens")


class NoInt8Products(ValueError):
    """The bundle has no native int8 products."""


def multiply_adds_per_token(bundle: Bundle) -> tuple[int, int]:
    """Return the multiply-adds of all products for a source token and for a row of a decoder step.

    Attention is not counted: it grows with the lengths. Raises `NoInt8Products`.
    """
    return _weights(bundle.file(ENCODER_FILE)), _weights(bundle.file(DECODER_FILE))


def _weights(file: Path) -> int:
    graph = onnx.load(file).graph
    weights = {each.name: prod(each.dims) for each in graph.initializer if each.data_type == onnx.TensorProto.INT8}
    products = [node for node in graph.node if node.domain == _DOMAIN and node.op_type not in _NO_WORK]
    total: int = sum(weights.get(name, 0) for node in products for name in node.input)
    if not total:
        raise NoInt8Products(f"{file} has no native int8 products; give an int8 bundle of this version")
    return total
