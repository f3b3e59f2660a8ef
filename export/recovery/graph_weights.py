"""Weights of the graphs of a bundle: constants by name, int8 matrices and tables restored from their steps."""

from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, numpy_helper
from onnx.checker import ValidationError

from model.checkpoints.checkpoint import CheckpointError

Matrix = NDArray[np.float32]
_ZERO_POINT = 128
_PRODUCTS = frozenset({"MatMul", "Gemm", "Linear", "LinearRelu", "LinearAdd", "LinearAddNormalization"})


class GraphWeights:
    """Nodes and constants of one graph. Matrices are [inputs, outputs], as the graph multiplies with them."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            model = onnx.load(file)
        except (OSError, DecodeError, ValidationError) as error:
            raise CheckpointError(f"{file}: not readable as ONNX (damaged or truncated): {error}") from error
        self.nodes: list[NodeProto] = list(model.graph.node)
        self._constants = {tensor.name: tensor for tensor in model.graph.initializer}

    def __contains__(self, name: str) -> bool:
        return name in self._constants

    def constant(self, name: str) -> NDArray[np.generic]:
        """Return a constant as it is stored. Raises `CheckpointError` if the graph has none of this name."""
        if name not in self._constants:
            raise CheckpointError(
                f"{self.file} has no weights `{name}`: it is the graph of another architecture or of an older export"
            )
        return numpy_helper.to_array(self._constants[name])

    def vector(self, name: str) -> Matrix:
        """Return a vector or a table of floats in float32."""
        return self.constant(name).astype(np.float32)

    def has_matrix(self, name: str) -> bool:
        """Return whether the graph multiplies with a matrix of this name."""
        return name in self or f"{name}/panels" in self

    def matrix(self, name: str, num_inputs: int) -> Matrix:
        """Return a matrix [num_inputs, outputs]."""
        if name in self:
            return self.vector(name)
        steps, scales = self.steps(name, num_inputs)
        return steps * scales

    def steps(self, name: str, num_inputs: int) -> tuple[NDArray[np.int8], Matrix]:
        """Return an int8 matrix [num_inputs, outputs] and the size of a step in each column."""
        scales = self.vector(f"{name}/scales")
        # [panels, inputs / 4, columns of a panel, 4]
        panels = self.constant(f"{name}/panels").astype(np.int8)
        whole = panels.transpose(1, 3, 0, 2).reshape(panels.shape[1] * panels.shape[3], -1)
        return whole[:num_inputs, : len(scales)], scales

    def table(self, name: str, width: int) -> Matrix:
        """Return a table of embeddings [tokens, width]."""
        if name in self:
            return self.vector(name)
        if f"{name}/panels" in self:
            return self.matrix(name, width).T
        # Older bundles: one byte for each number and [tokens, 1] scales.
        unsigned = self.constant(f"{name}/int8").astype(np.float32)
        return (unsigned - _ZERO_POINT) * self.vector(f"{name}/scales")

    def has_node(self, *operators: str) -> bool:
        """Return whether the graph has a node of one of these operators."""
        return any(node.op_type in operators for node in self.nodes)

    def attribute(self, name: str, *operators: str) -> object:
        """Return an attribute of the first node of these operators that has it, None without such a node."""
        for node in self.nodes:
            if node.op_type in operators:
                for attribute in node.attribute:
                    if attribute.name == name:
                        return _value(attribute)
        return None

    def normalises_before_products(self, weight: str) -> bool:
        """Return whether the normalisation with this weight precedes the first product."""
        for node in self.nodes:
            if node.op_type in _PRODUCTS:
                return False
            if node.op_type == "LayerNormalization" and weight in node.input:
                return True
        return False


def _value(attribute: AttributeProto) -> object:
    value: object = onnx.helper.get_attribute_value(attribute)
    return value.decode() if isinstance(value, bytes) else value
