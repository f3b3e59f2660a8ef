"""Microseconds of the output projection with a shortlist: a list for each row, one for the batch, or all tokens.

    python -m benchmarks.decoder_steps.listed_product [--vocabulary 32000] [--width 256]

Random int8 weights; sources have 20 tokens, drawn by Zipf's law, with 50 target tokens each, beside the first 50. The
list of the batch is the union, whose columns lie side by side already: gathering them is not counted.
"""

import time
from collections.abc import Mapping
from statistics import median

import numpy as np
import onnxruntime as ort
import typer
from numpy.typing import NDArray
from onnx import TensorProto, helper

from export.graphs.onnx_nodes import DOMAIN, OPSET
from export.int8.operators import BEST_LISTED_TOKENS, BEST_TOKENS, add_functions, in_panels
from kernels.onnx_registration import register

Arrays = dict[str, NDArray[np.generic]]
_SOURCE_TOKENS, _LISTED, _FIRST, _RUNS = 20, 50, 50, 60
_CACHE_LINE = 64  # bytes
_OUTPUTS = {"logits": TensorProto.FLOAT, "tokens": TensorProto.INT64, "log_normalizer": TensorProto.FLOAT}


def main(vocabulary: int = 32_000, width: int = 256) -> None:
    """Print a row for each number of rows."""
    random = np.random.default_rng(0)
    weight = random.integers(-60, 61, (width, vocabulary)).astype(np.int8)
    translations = random.integers(0, vocabulary, (vocabulary, _LISTED))
    frequencies = 1 / np.arange(1, vocabulary + 1)
    frequencies /= frequencies.sum()
    print("rows   list   union   list a row   list a batch   all tokens")
    for rows in (1, 8, 32, 64):
        hidden = random.standard_normal((rows, width)).astype(np.float32)
        sources = [random.choice(vocabulary, _SOURCE_TOKENS, p=frequencies) for _ in range(rows)]
        lists = [np.unique(np.append(translations[source], np.arange(_FIRST))).astype(np.int32) for source in sources]
        capacity = max(map(len, lists))
        listed = {
            "lists": np.stack([np.pad(each, (0, capacity - each.size)) for each in lists]),
            "lengths": np.array([each.size for each in lists], np.int32),
            "list_of_row": np.arange(rows, dtype=np.int32),
        }
        union = np.unique(np.concatenate(lists))
        a_row = _microseconds(BEST_LISTED_TOKENS, _inputs(weight, hidden) | listed)
        a_batch = _microseconds(BEST_TOKENS, _inputs(weight[:, union], hidden))
        whole = _microseconds(BEST_TOKENS, _inputs(weight, hidden))
        print(f"{rows:4} {capacity:6} {union.size:7} {a_row:12.0f} {a_batch:14.0f} {whole:12.0f}")


def _inputs(weight: NDArray[np.int8], hidden: NDArray[np.float32]) -> Arrays:
    outputs = weight.shape[1]
    return {
        "hidden": hidden,
        "weight": _aligned(in_panels(weight)),
        "scales": np.full(outputs, 1e-3, np.float32),
        "sums": weight.sum(axis=0, dtype=np.int32),
        "bias": np.zeros(outputs, np.float32),
        "mask": np.zeros(outputs, np.float32),
        "num_candidates": np.ones(1, np.int64),
        "with_scores": np.zeros(1, np.bool_),
    }


def _aligned(array: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return a copy that begins with a line of the cache, as ONNX Runtime's weights do."""
    memory = np.empty(array.size + _CACHE_LINE, np.int8)
    begin = -memory.ctypes.data % _CACHE_LINE
    copy = memory[begin : begin + array.size].reshape(array.shape)
    copy[...] = array
    return copy


def _microseconds(operator: str, inputs: Mapping[str, NDArray[np.generic]]) -> float:
    node = helper.make_node(operator, list(inputs), list(_OUTPUTS), domain=DOMAIN)
    attributes = {"zero_point": 128, "levels": 127.0, "block_size": 1, "last_token": inputs["scales"].size - 1}
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None)
        for name, array in inputs.items()
    ]
    returned = [helper.make_tensor_value_info(name, kind, None) for name, kind in _OUTPUTS.items()]
    graph = helper.make_graph([node], operator, given, returned)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    add_functions(model)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    register(options)
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    for name in _OUTPUTS:
        binding.bind_output(name)
    seconds = []
    for _ in range(_RUNS):
        begun = time.perf_counter()
        session.run_with_iobinding(binding)
        seconds.append(time.perf_counter() - begun)
    return 1e6 * median(seconds)


if __name__ == "__main__":
    typer.run(main)
