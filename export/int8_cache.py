"""Caches of keys and values in int8: a quarter of the memory that a decoder step reads and that beams copy.

One fixed step for all, `INT8_CACHE_STEP`; the model's keys and values must have been rescaled to [-1, 1] before, see
export.key_value_ranges.
"""

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from export import bundle as names

_STEP = "int8/cache_step"
# Places of past keys and values among the inputs of com.microsoft.GroupQueryAttention, and of the first scale.
_PAST = (3, 4)
_FIRST_SCALE = 12


def store_caches_in_int8(model: ModelProto) -> ModelProto:
    """Let the decoder graph read and write int8 caches, or the encoder graph emit them. Changed in place."""
    cached: set[str] = set()
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention" and len(node.input) > max(_PAST) and node.input[_PAST[0]]:
            cached.update(node.input[place] for place in _PAST)
            cached.update(node.output[1:3])
            node.input.extend([""] * (_FIRST_SCALE - len(node.input)) + [_STEP, _STEP])
            for kind in ("k_quant_type", "v_quant_type"):
                node.attribute.append(helper.make_attribute(kind, "PER_TENSOR"))
            node.attribute.append(helper.make_attribute("kv_cache_bit_width", 8))
    if names.CROSS_KEYS_VALUES in {output.name for output in model.graph.output}:
        _quantize_before_transposing(model)
        cached.add(names.CROSS_KEYS_VALUES)
    for value in (*model.graph.input, *model.graph.output):
        if value.name in cached:
            value.type.tensor_type.elem_type = TensorProto.INT8
    step = np.array([names.INT8_CACHE_STEP], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(step, _STEP))
    return model


def _quantize_before_transposing(model: ModelProto) -> None:
    nodes = list(model.graph.node)
    (place,) = (i for i, node in enumerate(nodes) if names.CROSS_KEYS_VALUES in node.output)
    transpose = nodes[place]
    scalar = numpy_helper.from_array(np.array(names.INT8_CACHE_STEP, np.float32), f"{_STEP}/scalar")
    zero = numpy_helper.from_array(np.array(0, np.int8), "int8/cache_zero_point")
    model.graph.initializer.extend([scalar, zero])
    quantized = f"{transpose.input[0]}/int8"
    quantize = helper.make_node("QuantizeLinear", [transpose.input[0], scalar.name, zero.name], [quantized])
    transpose.input[0] = quantized
    nodes.insert(place, quantize)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
