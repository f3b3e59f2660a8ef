import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from export.graphs.layers import ScaledMatrix
from export.int8.operators import add_functions, in_panels
from export.int8.quantize import quantize_per_row
from export.int8.steps import quantize_in_pairs

Floats = NDArray[np.float32]


def _run(model: onnx.ModelProto, inputs: dict[str, NDArray[np.generic]]) -> Floats:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: Floats = session.run(None, inputs)[0]
    return found


def _model(nodes: list[onnx.NodeProto], constants: dict[str, Floats], input_type: int, rank: int) -> onnx.ModelProto:
    names = ["rows", "width", "depth"][:rank]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("input", input_type, names)],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _quantized(model: onnx.ModelProto) -> onnx.ModelProto:
    quantize_per_row(model)
    add_functions(model)
    return model


def _product(weight: Floats, bias: Floats) -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["input", "weight"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["output"]),
    ]
    return _quantized(_model(nodes, {"weight": weight, "bias": bias}, TensorProto.FLOAT, 2))


def _weight(inputs: int = 37, outputs: int = 29) -> tuple[Floats, Floats]:
    random = np.random.default_rng(0)
    return random.standard_normal((inputs, outputs)).astype(np.float32), random.standard_normal(outputs).astype(
        np.float32
    )


def _rows(count: int, inputs: int = 37) -> Floats:
    """Rows whose scales differ by eight orders of magnitude."""
    random = np.random.default_rng(1)
    scales = 10.0 ** random.uniform(-4, 4, (count, 1))
    return (random.standard_normal((count, inputs)) * scales).astype(np.float32)


@pytest.mark.parametrize("inputs", [1, 2, 37, 256])
def test_weights_of_a_product_are_at_most_128_with_their_neighbour(inputs: int) -> None:
    weight = _weight(inputs, 500)[0]
    weight[:, ::3] = weight[:1, ::3] * 2.5  # all the same, so that both are rounded up
    quantized, scales = quantize_in_pairs(weight)
    pairs = np.pad(quantized.astype(int), ((0, inputs % 2), (0, 0))).reshape(-1, 2, 500)
    heaviest = np.maximum(pairs.clip(min=0).sum(axis=1).max(axis=0), -pairs.clip(max=0).sum(axis=1).min(axis=0))
    assert heaviest.max() <= 128
    # And no smaller than they must be, unless the weights are multiples of one step anyhow.
    is_exact = (np.abs(quantized * scales - weight) <= 2e-3 * scales).all(axis=0)
    assert heaviest[~is_exact].min(initial=128) >= 126
    assert is_exact[::3].all()
    assert (np.abs(quantized * scales - weight) <= 0.5001 * scales).all()


def test_products_are_within_about_a_hundredth_row_by_row() -> None:
    weight, bias = _weight(256, 64)
    rows = _rows(50, 256)
    exact = rows.astype(np.float64) @ weight
    found = _run(_product(weight, np.zeros_like(bias)), {"input": rows}).astype(np.float64)
    errors = np.linalg.norm(found - exact, axis=1) / np.linalg.norm(exact, axis=1)
    assert errors.max() < 0.02
    assert errors.mean() < 0.012


def test_what_went_through_a_relu_is_kept_twice_as_exactly() -> None:
    weight, bias = _weight(256, 64)
    rows = np.abs(_rows(50, 256))
    nodes = [
        helper.make_node("Relu", ["input"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "weight"], ["output"]),
    ]
    found = _run(_quantized(_model(nodes, {"weight": weight}, TensorProto.FLOAT, 2)), {"input": rows})
    # Exact weights, so that only the rows' own error is left.
    quantized, scales = quantize_in_pairs(weight)
    exact = rows.astype(np.float64) @ (quantized * scales).astype(np.float64)
    signed = _run(_product(weight, np.zeros_like(bias)), {"input": rows})
    error, signed_error = (np.linalg.norm(product - exact, axis=1) for product in (found, signed))
    assert (error < 0.6 * signed_error).mean() > 0.9


def test_a_product_does_not_depend_on_the_rows_beside_it() -> None:
    model, rows = _product(*_weight()), _rows(40)
    together = _run(model, {"input": rows})
    for row in range(len(rows)):
        assert np.array_equal(_run(model, {"input": rows[row : row + 1]})[0], together[row])
    assert np.array_equal(_run(model, {"input": rows[::-1].copy()})[::-1], together)


@pytest.mark.parametrize("width", [5, 12, 16, 20, 64, 100, 130])
def test_an_embedding_is_kept_to_half_a_step_of_each_token(width: int) -> None:
    table = np.random.default_rng(2).standard_normal((11, width)).astype(np.float32)
    table *= 10.0 ** np.arange(-5, 6, dtype=np.float32)[:, None]
    table[3] = 0.0
    node = helper.make_node("Gather", ["embed.weight", "input"], ["output"])
    model = _quantized(_model([node], {"embed.weight": table}, TensorProto.INT32, 2))
    tokens = np.array([[0, 3, 10], [7, 7, 1]], np.int32)
    found = _run(model, {"input": tokens})
    assert found.shape == (2, 3, width)
    pairs = np.abs(np.pad(table, ((0, 0), (0, width % 2)))).reshape(len(table), -1, 2).sum(axis=2)
    half_a_step = pairs.max(axis=1, keepdims=True) / 127 / 2
    assert (np.abs(found - table[tokens]) <= 1.001 * half_a_step[tokens]).all()
    assert [node.op_type for node in model.graph.node] == ["EmbedTokens"]


@pytest.mark.parametrize("scale", [1.0, 512**0.5, 300**-0.5])
def test_a_scaled_embedding_has_the_numbers_of_its_matrix(scale: float) -> None:
    """So that an output projection with another factor is equal to it."""
    matrix = torch.randn(700, 20, generator=torch.Generator().manual_seed(0))
    node = helper.make_node("Gather", ["embed.weight", "input"], ["output"])
    model = _model([node], {"embed.weight": (matrix * scale).numpy()}, TensorProto.INT32, 2)
    quantize_per_row(model, {"embed.weight": ScaledMatrix(matrix, scale)})
    add_functions(model)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    numbers, steps = quantize_in_pairs(matrix.numpy().T)
    # 700 tokens are 44 blocks of 16.
    assert np.array_equal(constants["embed.weight/panels"], in_panels(np.pad(numbers, ((0, 0), (0, 4)))))
    np.testing.assert_allclose(constants["embed.weight/scales"], steps * scale, rtol=1e-6)
    tokens = np.array([[0, 63, 64, 699]], np.int32)
    np.testing.assert_allclose(_run(model, {"input": tokens}), (numbers * steps * scale).T[tokens], rtol=1e-6)


def _numbers_of_another_engine(num_inputs: int = 96) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """int8 numbers of 40 columns, of which the first four are too large for pairs, and their steps."""
    random = np.random.default_rng(4)
    numbers = np.rint(random.normal(0, 24, (num_inputs, 40))).clip(-63, 63).astype(np.int64)
    numbers[:2, :4] = 127
    numbers[:, 39] = 0
    return numbers, random.uniform(1e-3, 1e-1, 40).astype(np.float32)


def test_weights_that_were_int8_keep_their_numbers_where_pairs_fit() -> None:
    numbers, steps = _numbers_of_another_engine()
    weight = (numbers * steps.astype(np.float64)).astype(np.float32)
    quantized, scales = quantize_in_pairs(weight)
    assert np.array_equal(quantized[:, 4:39], numbers[:, 4:39])
    np.testing.assert_allclose(scales[4:39], steps[4:39], rtol=1e-5)
    assert not quantized[:, 39].any()
    pairs = quantized[::2].astype(int), quantized[1::2].astype(int)
    assert np.abs(pairs[0].clip(0) + pairs[1].clip(0)).max() <= 128
    assert np.abs(quantized[:, :4] * scales[:4] - weight[:, :4]).max() <= scales[:4].max() * 0.51
