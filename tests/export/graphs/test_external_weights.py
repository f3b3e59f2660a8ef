from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from export.graphs.external_weights import Weights, write_graph

ROWS = 700


def _graph(table: NDArray[np.float32]) -> ModelProto:
    """Return a graph that looks up rows of a table, and has a small constant."""
    nodes = [
        helper.make_node("Gather", ["table", "rows"], ["found"]),
        helper.make_node("Add", ["found", "small"], ["sum"]),
    ]
    graph = helper.make_graph(
        nodes,
        "lookup",
        [helper.make_tensor_value_info("rows", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("sum", TensorProto.FLOAT, ["n", table.shape[1]])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array(0.5, np.float32), "small")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _run(file: Path) -> object:
    session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
    return session.run(None, {"rows": np.array([1, ROWS - 1])})[0]


def test_large_weights_are_in_a_file_of_their_own_and_equal_ones_only_once(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    table, other = (random.standard_normal((ROWS, 512)).astype(np.float32) for _ in range(2))
    for name, weights in (("encoder", table), ("decoder", table), ("rank", other)):
        write_graph(_graph(weights), tmp_path / f"{name}.onnx")
        np.testing.assert_array_equal(_run(tmp_path / f"{name}.onnx"), weights[[1, ROWS - 1]] + np.float32(0.5))
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes["encoder.weights"] == sizes["rank.weights"] == table.nbytes
    assert "decoder.weights" not in sizes
    assert sizes["encoder.onnx"] < 2000
    small = {
        each.name
        for each in onnx.load(tmp_path / "rank.onnx", load_external_data=False).graph.initializer
        if each.raw_data
    }
    assert small == {"small"}


@pytest.mark.parametrize("rows", [ROWS, 100])
def test_weights_that_a_graph_only_names_are_written_as_its_own(rows: int, tmp_path: Path) -> None:
    table = np.random.default_rng(1).standard_normal((rows, 512)).astype(np.float32)
    own, named = _graph(table), _graph(table)
    named.graph.initializer[0].ClearField("raw_data")
    named.graph.initializer[0].data_location = TensorProto.EXTERNAL
    weights: Weights = {"table": table}
    for model, folder in ((own, tmp_path / "own"), (named, tmp_path / "named")):
        folder.mkdir()
        write_graph(model, folder / "encoder.onnx", weights if model is named else None)
    files = sorted(path.name for path in (tmp_path / "own").iterdir())
    assert len(files) == (2 if rows == ROWS else 1)
    for file in files:
        assert (tmp_path / "own" / file).read_bytes() == (tmp_path / "named" / file).read_bytes()


def test_equal_weights_of_one_graph_are_written_once(tmp_path: Path) -> None:
    table = np.random.default_rng(1).standard_normal((ROWS, 512)).astype(np.float32)
    model = _graph(table)
    model.graph.initializer.append(numpy_helper.from_array(table, "copy"))
    model.graph.node[1].input[1] = "found_again"
    model.graph.node.insert(0, helper.make_node("Gather", ["copy", "rows"], ["found_again"]))
    write_graph(model, tmp_path / "decoder.onnx")
    assert (tmp_path / "decoder.weights").stat().st_size == table.nbytes
    np.testing.assert_array_equal(_run(tmp_path / "decoder.onnx"), 2 * table[[1, ROWS - 1]])
