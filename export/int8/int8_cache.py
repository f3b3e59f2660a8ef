"""int8 KV caches: a quarter of the memory that a decoder step reads and that beams copy.

All numbers have one step, `INT8_CACHE_STEP`; export.int8.key_value_ranges rescales keys and values to [-1, 1] before.
"""

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from bundle import tensors as names
from export.graphs.dead_nodes import remove_unused
from export.graphs.onnx_function import DOMAIN
from export.int8 import operators

_STEP = "int8/cache_step"
# Input indices of com.microsoft.GroupQueryAttention.
_PAST_KEYS, _PAST_VALUES, _POSITIONS, _BIAS = 3, 4, 5, 10


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
