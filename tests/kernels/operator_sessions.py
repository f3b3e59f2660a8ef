"""Sessions of one operator each, whose inputs take any sizes: native, or as the function that the graph defines."""

from collections.abc import Mapping

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from export.graphs.onnx_nodes import DOMAIN, OPSET
from export.int8 import operators
from export.int8.operators import BEST_LISTED_TOKENS, BEST_TOKENS
from kernels.layout import from_native, to_native
from kernels.onnx_registration import register

Arrays = dict[str, NDArray[np.generic]]
Numbers = dict[str, NDArray[np.number]]

_LINEAR = {
    "hidden": TensorProto.FLOAT,
    "weight": TensorProto.INT8,
    "scales": TensorProto.FLOAT,
    "sums": TensorProto.INT32,
    "bias": TensorProto.FLOAT,
}
_RESIDUAL = {"residual": TensorProto.FLOAT}
_NORMALIZATION = {"norm_weight": TensorProto.FLOAT, "norm_bias": TensorProto.FLOAT}
_RANKING = {"mask": TensorProto.FLOAT, "num_candidates": TensorProto.INT64, "with_scores": TensorProto.BOOL}
_LISTS = {"lists": TensorProto.INT32, "lengths": TensorProto.INT32, "list_of_row": TensorProto.INT32}
_CACHES = ("keys", "values")
PRESENT = ("present_keys", "present_values")
_CACHE = {"keys": TensorProto.INT8, "values": TensorProto.INT8, "positions": TensorProto.INT32}
_QUERY = {"query": TensorProto.FLOAT, "last_key": TensorProto.FLOAT, "last_value": TensorProto.FLOAT}
_BIASES = {"biases": TensorProto.FLOAT}
_OUTPUT = {"output": TensorProto.FLOAT}
_ATTENDED = _OUTPUT | {"present_keys": TensorProto.INT8, "present_values": TensorProto.INT8}
_RANKED = {"logits": TensorProto.FLOAT, "tokens": TensorProto.INT64, "log_normalizer": TensorProto.FLOAT}

# Types of what goes in and comes out, by name and in order.
_SIGNATURES: dict[str, tuple[Mapping[str, int], Mapping[str, int]]] = {
    operators.EMBED_TOKENS: (
        {"tokens": TensorProto.INT32, "weight": TensorProto.INT8, "scales": TensorProto.FLOAT},
        _OUTPUT,
    ),
    operators.LINEAR: (_LINEAR, _OUTPUT),
    operators.LINEAR_RELU: (_LINEAR, _OUTPUT),
    operators.LINEAR_ADD: (_LINEAR | _RESIDUAL, _OUTPUT),
    operators.LINEAR_ADD_NORMALIZATION: (_LINEAR | _RESIDUAL | _NORMALIZATION, _OUTPUT),
    operators.SELF_ATTENTION: ({"fused": TensorProto.FLOAT} | _CACHE, _ATTENDED),
    operators.BIASED_SELF_ATTENTION: ({"fused": TensorProto.FLOAT} | _CACHE | _BIASES, _ATTENDED),
    operators.BIASED_SOURCE_ATTENTION: (
        {"fused": TensorProto.FLOAT, "last_positions": TensorProto.INT32} | _BIASES,
        _OUTPUT,
    ),
    operators.CROSS_ATTENTION: (_QUERY | _CACHE, _ATTENDED),
    operators.SOURCE_ATTENTION: ({"fused": TensorProto.FLOAT, "last_positions": TensorProto.INT32}, _OUTPUT),
    BEST_TOKENS: (_LINEAR | _RANKING, _RANKED),
    BEST_LISTED_TOKENS: (_LINEAR | _RANKING | _LISTS, _RANKED),
}


class OneOperator:
    """A session of one operator. Native ones run on the instruction set that was registered last in this process.

    `constants` are inputs that belong to the graph, as weights of a model do.
    """

    def __init__(
        self,
        name: str,
        attributes: Mapping[str, float],
        *,
        is_native: bool = True,
        threads: int = 1,
        constants: Mapping[str, NDArray[np.generic]] | None = None,
    ) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        self._is_native = is_native
        if is_native:
            register(options)
        content = _model(name, attributes, constants or {}).SerializeToString()
        self.session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._outputs = [output.name for output in self.session.get_outputs()]

    def run(self, inputs: Mapping[str, NDArray[np.generic]]) -> Numbers:
        """Everything that comes out, by name. Keys and values are [rows, heads, positions, head_dim]."""
        found = dict(zip(self._outputs, self.session.run(None, self.fed(inputs)), strict=True))
        if not self._is_native:
            return found
        return {name: from_native(array) if name in PRESENT else array for name, array in found.items()}

    def fed(self, inputs: Mapping[str, NDArray[np.generic]]) -> Arrays:
        """The inputs in the order of memory that the operator reads."""
        if not self._is_native:
            return dict(inputs)
        return {
            name: to_native(array) if name in _CACHES and array.ndim == 4 else array for name, array in inputs.items()
        }


def _model(name: str, attributes: Mapping[str, float], constants: Mapping[str, NDArray[np.generic]]) -> ModelProto:
    inputs, outputs = _SIGNATURES[name]
    node = helper.make_node(name, list(inputs), list(outputs), domain=DOMAIN)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    graph = helper.make_graph(
        [node],
        name,
        [helper.make_tensor_value_info(key, kind, None) for key, kind in inputs.items() if key not in constants],
        [helper.make_tensor_value_info(key, kind, None) for key, kind in outputs.items()],
        [numpy_helper.from_array(array, key) for key, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    operators.add_functions(model)
    return model
