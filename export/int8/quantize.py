"""int8 for the CPU: weights quantised per output column at export, activations per row at run time.

The scale of a row depends on this row only, so that a result does not depend on the batch; one scale for the batch
would also round small rows to zero. Activations are unsigned with zero point 128, because VNNI and AMX have
instructions for uint8 x int8. Other processors have an instruction that adds two products in 16 bits and saturates:
weights are limited so that it never saturates, and results are equal on all processors.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from bundle import tensors as names
from export.graphs.external_weights import MIN_DEFERRED_BYTES, Weights
from export.graphs.layers import ScaledMatrix
from export.graphs.onnx_nodes import DOMAIN, MICROSOFT, remove_unused
from export.graphs.ranking import BlockedVocabulary, Ranking
from export.int8 import operators
from export.int8.operators import BEST_TOKENS
from export.int8.steps import quantize_in_pairs
from kernels.layout import QUAD

_LARGEST = 127
_LARGEST_UNSIGNED = 255
_ZERO_POINT = 128
_STEP = "int8/cache_step"
# Input indices of com.microsoft.GroupQueryAttention.
_PAST_KEYS, _PAST_VALUES, _POSITIONS, _BIAS = 3, 4, 5, 10


def quantize_per_row(
    model: ModelProto,
    matrices: Mapping[str, ScaledMatrix] | None = None,
    ranking: Ranking | None = None,
    weights: Weights | None = None,
) -> ModelProto:
    """Replace every product with a constant matrix, and every embedding table, by its int8 counterpart.

    `matrices` are the originals of constants that the graph contains multiplied, by name. With `ranking`, the nodes
    from the output projection to candidates and normalisers become one operator, and scores become optional. The model
    is changed in place. `weights` are those that it only names; its large matrices in int8 join them.
    """
    return _Quantizer(model, matrices or {}, ranking, weights).run()


@dataclass(frozen=True, slots=True)
class _Int8Matrix:
    """A matrix in panels, with the scale and the sum of each column."""

    panels: NDArray[np.int8]
    scales: NDArray[np.float32]
    sums: NDArray[np.int32]


class _Quantizer:
    def __init__(
        self,
        model: ModelProto,
        matrices: Mapping[str, ScaledMatrix],
        ranking: Ranking | None,
        weights: Weights | None,
    ) -> None:
        self._matrices = matrices
        self._weights = {} if weights is None else weights
        self._min_deferred_bytes = math.inf if weights is None else MIN_DEFERRED_BYTES
        # Tables that embeddings and output projection share, by address and number of columns.
        self._shared: dict[tuple[int, int], _Int8Matrix] = {}
        self._ranking = ranking
        self._model = model
        self._graph = model.graph
        self._constants = {tensor.name: tensor for tensor in self._graph.initializer}
        self._nodes: list[NodeProto] = []
        self._producers = {output: node for node in self._graph.node for output in node.output}
        self._consumers: dict[str, list[NodeProto]] = {}
        for node in self._graph.node:
            for name in node.input:
                self._consumers.setdefault(name, []).append(node)
        # (product, nodes that its operator includes) by the last output; and the outputs of all nodes before it.
        self._at_the_end: dict[str, tuple[NodeProto, list[NodeProto]]] = {}
        self._in_between: set[str] = set()
        self._replaced: set[str] = set()

    def run(self) -> ModelProto:
        for node in self._graph.node:
            if self._is_product(node) and not self._is_ranked(node):
                followers = self._followers(node)
                chain = [node, *followers]
                self._at_the_end[chain[-1].output[0]] = node, followers
                self._in_between.update(member.output[0] for member in chain[:-1])
        for node in self._graph.node:
            if not self._replaced.isdisjoint(node.output):
                continue
            if node.output[0] in self._at_the_end:
                self._emit_linear(*self._at_the_end[node.output[0]])
            elif node.output[0] in self._in_between:
                continue
            elif self._is_product(node):
                self._emit_best_tokens(node)
            elif node.op_type == "Gather" and self._is_embedding(node.input[0]):
                self._quantize_lookup(node)
            else:
                self._nodes.append(node)
        del self._graph.node[:]
        self._graph.node.extend(self._nodes)
        remove_unused(self._model)
        if all(opset.domain != MICROSOFT for opset in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
        return self._model

    def _is_product(self, node: NodeProto) -> bool:
        return node.op_type == "MatMul" and self._is_matrix(node.input[1])

    def _followers(self, product: NodeProto) -> list[NodeProto]:
        """Return the nodes that the product's operator includes: bias, then ReLU or residual, then normalisation."""
        found: list[NodeProto] = []
        bias = self._only_consumer(product, "Add")
        if bias is None or not self._is_vector(bias.input[1]):
            return found
        found.append(bias)
        relu = self._only_consumer(bias, "Relu")
        if relu is not None:
            return [*found, relu]
        residual = self._only_consumer(bias, "Add")
        if residual is None or any(name in self._constants for name in residual.input):
            return found
        found.append(residual)
        normalization = self._only_consumer(residual, "LayerNormalization")
        if normalization is not None and len(normalization.input) == 3:
            found.append(normalization)
        return found

    def _only_consumer(self, node: NodeProto, operator: str) -> NodeProto | None:
        consumers = self._consumers.get(node.output[0], [])
        is_output = any(output.name == node.output[0] for output in self._graph.output)
        return consumers[0] if len(consumers) == 1 and consumers[0].op_type == operator and not is_output else None

    def _emit_linear(self, product: NodeProto, followers: list[NodeProto]) -> None:
        """Emit x @ W as (per-row quantised x) @ (per-column quantised W), scaled back, with the nodes that follow."""
        inputs, attributes = self._factors(product)
        kinds = [node.op_type for node in followers]
        if followers:
            inputs.append(followers[0].input[1])
        else:
            num_columns = self._constants[product.input[1]].dims[1]
            inputs.append(self._add_constant(f"int8/no_bias_{num_columns}", np.zeros(num_columns, np.float32)))
        name = operators.LINEAR_OF_SOME if self._is_gathered(product.input[0]) else operators.LINEAR
        if kinds[1:] == ["Relu"]:
            name = operators.LINEAR_RELU
        elif kinds[1:]:
            name = operators.LINEAR_ADD
            inputs += [other for other in followers[1].input if other != followers[0].output[0]]
            if len(kinds) == 3:
                name = operators.LINEAR_ADD_NORMALIZATION
                inputs += followers[2].input[1:]
                epsilon = (attribute.f for attribute in followers[2].attribute if attribute.name == "epsilon")
                attributes["epsilon"] = next(epsilon, 1e-5)
        output = (followers[-1] if followers else product).output[0]
        self._emit(name, inputs, [output], domain=DOMAIN, **attributes)

    def _emit_best_tokens(self, product: NodeProto) -> None:
        """Emit one operator for the nodes between the projection's input and the outputs."""
        assert self._ranking is not None
        ranking = self._ranking
        factors, attributes = self._factors(product)
        inputs = [
            *factors,
            self._add_constant(f"{ranking.weight}/bias", ranking.bias),
            self._add_constant(f"{ranking.weight}/mask", ranking.mask),
            names.NUM_CANDIDATES,
            names.WITH_SCORES,
        ]
        outputs = [names.CANDIDATE_LOGITS, names.CANDIDATE_TOKENS, names.LOG_NORMALIZER]
        last_token = ranking.num_tokens - 1
        attributes |= {"block_size": ranking.block_size, "last_token": last_token}
        self._emit(BEST_TOKENS, inputs, outputs, domain=DOMAIN, **attributes)
        self._graph.input.append(helper.make_tensor_value_info(names.WITH_SCORES, onnx.TensorProto.BOOL, [1]))
        self._replaced.update(outputs)

    def _factors(self, product: NodeProto) -> tuple[list[str], dict[str, int | float]]:
        """Return the first inputs of an operator with a product, and the attributes for quantising activations."""
        hidden, weight = product.input
        matrix = self._in_int8(weight, self._constants[weight].dims[1])
        missing = -self._constants[weight].dims[0] % QUAD
        # The output of a ReLU is not negative and needs no bit for a sign.
        is_positive = hidden in self._producers and self._producers[hidden].op_type == "Relu"
        if missing:
            hidden = self._pad(hidden, missing, product.output[0])
        inputs = [
            hidden,
            self._add_constant(f"{weight}/panels", matrix.panels),
            self._add_constant(f"{weight}/scales", matrix.scales),
            self._add_constant(f"{weight}/sums", matrix.sums),
        ]
        return inputs, {
            "zero_point": 0 if is_positive else _ZERO_POINT,
            "levels": float(_LARGEST_UNSIGNED if is_positive else _LARGEST),
        }

    def _is_ranked(self, product: NodeProto) -> bool:
        """Return whether a product is the output projection of all rows. Of selected rows it is an ordinary product."""
        if self._ranking is None or product.input[1] != self._ranking.weight:
            return False
        return not self._is_gathered(product.input[0])

    def _is_gathered(self, name: str) -> bool:
        """Return whether a tensor consists of gathered rows, possibly none."""
        return name in self._producers and self._producers[name].op_type == "Gather"

    def _pad(self, hidden: str, missing: int, product: str) -> str:
        pads = self._add_constant(f"{product}/pads", np.array([0, missing], np.int64))
        axes = self._add_constant("int8/last_axis", np.array([-1], np.int64))
        self._emit("Pad", [hidden, pads, "", axes], [f"{product}/filled"])
        return f"{product}/filled"

    def _is_vector(self, name: str) -> bool:
        return name in self._constants and len(self._constants[name].dims) == 1

    def _is_matrix(self, name: str) -> bool:
        return name in self._constants and len(self._constants[name].dims) == 2 and self._constants[name].dims[1] > 1

    def _is_embedding(self, name: str) -> bool:
        # Position tables are small; they stay in float32.
        return self._is_matrix(name) and name.endswith("embed.weight")

    def _quantize_lookup(self, node: NodeProto) -> None:
        table, tokens = node.input
        num_tokens, width = self._constants[table].dims
        # As many columns as an output projection has, which consists of whole blocks.
        blocks = BlockedVocabulary.of(num_tokens)
        matrix = self._in_int8(table, blocks.num_blocks * blocks.block_size)
        inputs = [
            tokens,
            self._add_constant(f"{table}/panels", matrix.panels),
            self._add_constant(f"{table}/scales", matrix.scales[:num_tokens]),
        ]
        self._emit(operators.EMBED_TOKENS, inputs, [node.output[0]], domain=DOMAIN, width=width)

    def _in_int8(self, name: str, num_columns: int) -> _Int8Matrix:
        """Return a constant in int8, padded with zeros to `num_columns`."""
        if scaled := self._matrices.get(name):
            key = scaled.rows.data_ptr(), num_columns
            if key not in self._shared:
                self._shared[key] = _int8_matrix(scaled.rows.numpy().T, num_columns)
            shared = self._shared[key]
            return replace(shared, scales=shared.scales * np.float32(scaled.scale))
        stored = self._weights[name] if name in self._weights else numpy_helper.to_array(self._constants[name])
        columns = np.asarray(stored, np.float32)
        return _int8_matrix(columns.T if self._is_embedding(name) else columns, num_columns)

    def _emit(
        self,
        operator: str,
        inputs: list[str],
        outputs: list[str],
        domain: str | None = None,
        **attributes: float | onnx.TensorProto,
    ) -> None:
        node = helper.make_node(operator, inputs, outputs, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)

    def _add_constant(self, name: str, value: NDArray[np.generic] | np.generic) -> str:
        if name not in self._constants:
            array = np.asarray(value)
            if array.nbytes >= self._min_deferred_bytes:
                self._weights[name] = array
                data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
                tensor = onnx.TensorProto(name=name, dims=array.shape, data_type=data_type)
                tensor.data_location = onnx.TensorProto.EXTERNAL
            else:
                tensor = numpy_helper.from_array(array, name)
            self._constants[name] = tensor
            self._graph.initializer.append(tensor)
        return name


def _int8_matrix(columns: NDArray[np.float32], num_columns: int) -> _Int8Matrix:
    quantized, scales = quantize_in_pairs(columns)
    missing = (0, num_columns - columns.shape[1])
    sums = quantized.sum(axis=0, dtype=np.int32)
    return _Int8Matrix(operators.in_panels(quantized, num_columns), np.pad(scales, missing), np.pad(sums, missing))


def store_caches_in_int8(model: ModelProto) -> ModelProto:
    """Let the decoder graph read and write int8 caches, or the encoder graph emit them. Changed in place."""
    cached: set[str] = set()
    for node in model.graph.node:
        if node.op_type != "GroupQueryAttention":
            continue
        table = _bias_table(model, node)
        attributes = [attribute for attribute in node.attribute if attribute.name != "causal"]
        given = [name for name in node.input[:_PAST_KEYS] if name]
        if node.input[_PAST_KEYS]:
            caches = [node.input[_PAST_KEYS], node.input[_PAST_VALUES]]
            cached.update(caches)
            cached.update(node.output[1:3])
            own = operators.BIASED_SELF_ATTENTION if table else operators.SELF_ATTENTION
            node.op_type = own if len(given) == 1 else operators.CROSS_ATTENTION
            given += caches
            attributes.append(helper.make_attribute("step", float(names.INT8_CACHE_STEP)))
        else:
            node.op_type = operators.BIASED_SOURCE_ATTENTION if table else operators.SOURCE_ATTENTION
        given += [node.input[_POSITIONS], *([table] if table else [])]
        node.domain = DOMAIN
        del node.input[:], node.attribute[:]
        node.input.extend(given)
        node.attribute.extend(attributes)
    if names.CROSS_KEYS_VALUES in {output.name for output in model.graph.output}:
        _quantize_before_transposing(model)
        cached.add(names.CROSS_KEYS_VALUES)
    for value in (*model.graph.input, *model.graph.output):
        if value.name in cached:
            value.type.tensor_type.elem_type = TensorProto.INT8
    remove_unused(model)  # the nodes that computed the total length, and gathered biases from their tables
    return model


def _bias_table(model: ModelProto, attention: NodeProto) -> str:
    """Return the table that the position bias of a node is gathered from; "" without a bias."""
    name = attention.input[_BIAS] if len(attention.input) > _BIAS else ""
    tables = {tensor.name for tensor in model.graph.initializer}
    producers = {output: node for node in model.graph.node for output in node.output}
    while name and name not in tables:
        name = producers[name].input[0]
    return name


def _quantize_before_transposing(model: ModelProto) -> None:
    nodes = list(model.graph.node)
    (index,) = (i for i, node in enumerate(nodes) if names.CROSS_KEYS_VALUES in node.output)
    transpose = nodes[index]
    scalar = numpy_helper.from_array(np.array(names.INT8_CACHE_STEP, np.float32), _STEP)
    zero = numpy_helper.from_array(np.array(0, np.int8), "int8/cache_zero_point")
    model.graph.initializer.extend([scalar, zero])
    quantized = f"{transpose.input[0]}/int8"
    quantize = helper.make_node("QuantizeLinear", [transpose.input[0], scalar.name, zero.name], [quantized])
    transpose.input[0] = quantized
    nodes.insert(index, quantize)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
