"""int8 for the CPU: weights per output column ahead of time, activations per row while running.

A row's scale is made from that row alone, so an answer does not depend on its neighbours in the batch; one scale for
the whole batch would let a loud neighbour drown a quiet row. Activations are unsigned with zero point 128, because
uint8 x int8 is the product that VNNI and AMX have instructions for.
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, numpy_helper

_LARGEST = 127  # symmetric: -127 ... 127
_LARGEST_UNSIGNED = 255
_ZERO_POINTS = {"signed": 128, "unsigned": 0}
_MICROSOFT = "com.microsoft"


def quantize_per_row(model: ModelProto) -> ModelProto:
    """Replace every product with a constant matrix, and every embedding table, by its int8 counterpart.

    Products with a single column (suppressed tokens' logits) stay as they are. The model is changed in place.
    """
    return _Quantizer(model).run()


class _Quantizer:
    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._graph = model.graph
        self._constants = {tensor.name: tensor for tensor in self._graph.initializer}
        self._nodes: list[NodeProto] = []
        self._producers = {output: node for node in self._graph.node for output in node.output}
        self._row_zero_points: set[str] = set()
        self._waiting_for_bias: dict[str, NodeProto] = {}

    def run(self) -> ModelProto:
        self._add_constant("int8/signed_step", np.float32(1 / _LARGEST))
        self._add_constant("int8/unsigned_step", np.float32(1 / _LARGEST_UNSIGNED))
        self._add_constant("int8/one", np.float32(1.0))
        self._add_constant("int8/signed_zero_point", np.uint8(_ZERO_POINTS["signed"]))
        self._add_constant("int8/unsigned_zero_point", np.uint8(_ZERO_POINTS["unsigned"]))
        self._add_constant("int8/last_axis", np.array([-1], np.int64))
        self._add_constant("int8/flat", np.array([-1], np.int64))
        for node in self._graph.node:
            if node.op_type == "MatMul" and self._is_matrix(node.input[1]):
                if self._has_scaled_rows(node.input[0]):
                    self._quantize_product_of_scaled_rows(node)
                else:
                    self._quantize_product(node)
            elif node.op_type == "Add" and node.input[0] in self._waiting_for_bias:
                self._give_bias(node)
            elif node.op_type == "Gather" and self._is_embedding(node.input[0]):
                self._quantize_lookup(node)
            else:
                self._nodes.append(node)
        del self._graph.node[:]
        self._graph.node.extend(self._nodes)
        self._keep_used_constants()
        if all(opset.domain != _MICROSOFT for opset in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(_MICROSOFT, 1))
        return self._model

    def _is_matrix(self, name: str) -> bool:
        return name in self._constants and len(self._constants[name].dims) == 2 and self._constants[name].dims[1] > 1

    def _is_embedding(self, name: str) -> bool:
        # Position tables are small and exact; they stay.
        return self._is_matrix(name) and name.endswith("embed.weight")

    def _has_scaled_rows(self, name: str) -> bool:
        """Whether no value of `name` is larger than 1, because every row was divided by its largest magnitude."""
        producer = self._producers.get(name)
        return producer is not None and producer.op_type == "Div"

    def _quantize_product_of_scaled_rows(self, node: NodeProto) -> None:
        """The same for rows whose scale is multiplied in further down: one fixed scale, and room for a bias."""
        hidden, weight = node.input
        product = node.output[0]
        quantized, scales = quantize_columns(numpy_helper.to_array(self._constants[weight]))
        self._emit("QuantizeLinear", [hidden, "int8/signed_step", "int8/signed_zero_point"], [f"{product}/int8"])
        inputs = [
            f"{product}/int8",
            self._add_constant(f"{weight}/int8", quantized),
            "int8/signed_step",
            self._add_constant(f"{weight}/scales", scales),
            "int8/signed_zero_point",
            "",
        ]
        self._emit("MatMulIntegerToFloat", inputs, [product], domain=_MICROSOFT)
        self._waiting_for_bias[product] = self._nodes[-1]

    def _give_bias(self, node: NodeProto) -> None:
        """Let the product before it do the addition."""
        product, bias = node.input
        integer_product = self._waiting_for_bias[product]
        integer_product.input.append(bias)
        integer_product.output[0] = node.output[0]

    def _quantize_product(self, node: NodeProto) -> None:
        """x @ W as (per-row quantised x) @ (per-column quantised W), scaled back."""
        hidden, weight = node.input
        product = node.output[0]
        quantized, scales = quantize_columns(numpy_helper.to_array(self._constants[weight]))
        row_scale = f"{product}/row_scale"
        # What went through a ReLU has no sign to spend a bit on.
        is_positive = hidden in self._producers and self._producers[hidden].op_type == "Relu"
        sign = "unsigned" if is_positive else "signed"
        magnitudes = hidden
        if not is_positive:
            magnitudes = f"{product}/magnitudes"
            self._emit("Abs", [hidden], [magnitudes])
        self._emit("ReduceMax", [magnitudes, "int8/last_axis"], [f"{product}/largest"], keepdims=1)
        self._emit("Mul", [f"{product}/largest", f"int8/{sign}_step"], [row_scale])
        self._emit("Reshape", [row_scale, "int8/flat"], [f"{row_scale}s"])
        # A row of zeros divides 0 by 0 here, and whatever comes of that is multiplied by its row scale, 0, below.
        inputs = [hidden, f"{row_scale}s", self._zero_point_of_each_row(hidden, sign)]
        self._emit("QuantizeLinear", inputs, [f"{product}/int8"], axis=0)
        self._emit(
            "MatMulIntegerToFloat",
            [
                f"{product}/int8",
                self._add_constant(f"{weight}/int8", quantized),
                "int8/one",
                self._add_constant(f"{weight}/scales", scales),
                f"int8/{sign}_zero_point",
            ],
            [f"{product}/unscaled"],
            domain=_MICROSOFT,
        )
        self._emit("Mul", [f"{product}/unscaled", row_scale], [product])

    def _zero_point_of_each_row(self, hidden: str, sign: str) -> str:
        # Every product of a graph has the same number of rows.
        name = f"int8/{sign}_zero_points"
        if name not in self._row_zero_points:
            self._row_zero_points.add(name)
            self._emit("Shape", [hidden], [f"{name}/num_rows"], start=0, end=1)
            value = helper.make_tensor("value", onnx.TensorProto.UINT8, [1], [_ZERO_POINTS[sign]])
            self._emit("ConstantOfShape", [f"{name}/num_rows"], [name], value=value)
        return name

    def _quantize_lookup(self, node: NodeProto) -> None:
        table, tokens = node.input
        quantized, scales = quantize_columns(numpy_helper.to_array(self._constants[table]).T)
        width = quantized.shape[0]
        unsigned = (quantized.T.astype(np.int16) + _ZERO_POINTS["signed"]).astype(np.uint8)
        inputs = [
            self._add_constant(f"{table}/int8", np.ascontiguousarray(unsigned)),
            tokens,
            self._add_constant(f"{table}/scales", scales[:, None]),
        ]
        # One block a token: the smallest power of two that the embedding fits in.
        block_size = max(16, 1 << (width - 1).bit_length())
        self._emit(
            "GatherBlockQuantized",
            inputs,
            [node.output[0]],
            domain=_MICROSOFT,
            bits=8,
            block_size=block_size,
            gather_axis=0,
            quantize_axis=1,
        )

    def _emit(
        self,
        operator: str,
        inputs: list[str],
        outputs: list[str],
        domain: str | None = None,
        **attributes: int | onnx.TensorProto,
    ) -> None:
        node = helper.make_node(operator, inputs, outputs, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)

    def _add_constant(self, name: str, value: NDArray[np.generic] | np.generic) -> str:
        if name not in self._constants:
            tensor = numpy_helper.from_array(np.asarray(value), name)
            self._constants[name] = tensor
            self._graph.initializer.append(tensor)
        return name

    def _keep_used_constants(self) -> None:
        used = {name for node in self._graph.node for name in node.input}
        kept = [tensor for tensor in self._graph.initializer if tensor.name in used]
        del self._graph.initializer[:]
        self._graph.initializer.extend(kept)


def quantize_columns(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A matrix [inputs, outputs] as int8 and one scale for each output: `quantized * scales` is the matrix again."""
    largest = np.abs(weight).max(axis=0)
    scales = np.where(largest > 0, largest, 1.0).astype(np.float32) / np.float32(_LARGEST)
    return np.rint(weight / scales).astype(np.int8), scales.astype(np.float32)
