"""int8 graphs use operators that not every ONNX Runtime has, and define each of them for those that have not."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from bundle import tensors as names
from bundle.loading import Bundle
from export.graphs.onnx_nodes import DOMAIN
from export.int8 import operators
from kernels.onnx_registration import register
from tests.export.graph_runs import OnnxGraphs, Rows, random_tokens

FILES = (names.ENCODER_FILE, names.DECODER_FILE)
LENGTHS = (1, 5, 24, 3)


def _loaded_nodes(graph: Path, folder: Path, *, is_native: bool) -> set[tuple[str, str]]:
    """Domains and operators of what ONNX Runtime runs when it has loaded and optimised a graph."""
    options = ort.SessionOptions()
    options.log_severity_level = 4  # a graph optimised for this machine is not for others: just so
    options.optimized_model_filepath = str(folder / "loaded.onnx")
    if is_native:
        register(options)
    ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    loaded = onnx.load(folder / "loaded.onnx").graph
    return {(node.domain, node.op_type) for node in loaded.node}


@pytest.mark.parametrize("file", FILES)
def test_every_operator_of_ours_is_defined_in_the_graph_that_uses_it(file: str, int8_bundle: Bundle) -> None:
    model = onnx.load(int8_bundle.file(file))
    defined = {function.name for function in model.functions if function.domain == DOMAIN}
    bodies = [node for function in model.functions for node in function.node]
    used = {node.op_type for node in (*model.graph.node, *bodies) if node.domain == DOMAIN}
    assert used == defined
    assert operators.LINEAR in used


@pytest.mark.parametrize("file", FILES)
def test_native_operators_run_where_they_were_built_and_functions_elsewhere(
    file: str, int8_bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KVASIR_KERNELS", "portable")  # every processor runs these
    graph = int8_bundle.file(file)
    native, function = (_loaded_nodes(graph, tmp_path, is_native=is_native) for is_native in (True, False))
    linear = (DOMAIN, operators.LINEAR_ADD_NORMALIZATION)
    assert linear in native
    assert ("com.microsoft", "MatMulIntegerToFloat") not in native
    assert not any(domain == DOMAIN for domain, _ in function)
    assert ("com.microsoft", "MatMulIntegerToFloat") in function


@pytest.mark.parametrize("with_scores", [True, False])
def test_both_translate_alike(with_scores: bool, int8_bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KVASIR_KERNELS", "portable")  # every processor runs these
    shapes, start = int8_bundle.config.shapes, int8_bundle.config.special_tokens.decoder_start
    random = np.random.default_rng(3)
    sources = [random_tokens(random, shapes.vocab_size, length) for length in LENGTHS]
    graphs = [OnnxGraphs(*map(int8_bundle.file, FILES), is_native=is_native) for is_native in (True, False)]
    native, function = (Rows(each, shapes, sources) for each in graphs)
    previous: NDArray[np.int64] = np.full(len(sources), start, np.int64)
    for _ in range(8):
        found, expected = (rows.step(previous.tolist(), 4, with_scores=with_scores) for rows in (native, function))
        assert np.array_equal(found.tokens[:, 0], expected.tokens[:, 0])
        # Sums in another order: now and then a number is rounded the other way, and the logits of its row move.
        np.testing.assert_allclose(found.logits, expected.logits, atol=0.1)
        np.testing.assert_allclose(found.log_normalizer, expected.log_normalizer, atol=0.1)
        previous = found.tokens[:, 0]
        for rows in (native, function):
            rows.past_lengths += 1
