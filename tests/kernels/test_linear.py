"""Linear and what goes with it in one operator: a ReLU, a residual, a layer normalisation."""

import numpy as np
import pytest

from export.int8 import operators
from tests.kernels.arithmetic import Doubles, Floats, Matrix, normalized, random_rows
from tests.kernels.operator_sessions import Arrays, OneOperator

SIGNED = {"zero_point": 128, "levels": 127.0}
POSITIVE = {"zero_point": 0, "levels": 255.0}
EPSILON = {"epsilon": 1e-5}
KINDS = {
    operators.LINEAR: SIGNED,
    operators.LINEAR_RELU: SIGNED,
    operators.LINEAR_ADD: SIGNED,
    operators.LINEAR_ADD_NORMALIZATION: SIGNED | EPSILON,
}
# On both sides of what is multiplied together: 64 columns of 4 inputs, 4 or 6 rows; in tiles, 64 inputs, 16 or 32 rows.
# Fewer than 4 and fewer than 16 rows have loops of their own with AVX2.
NUM_ROWS = (1, 3, 4, 5, 6, 7, 12, 15, 16, 17, 33)
SIZES = [(inputs, outputs) for inputs in (4, 8, 36, 64, 256) for outputs in (1, 5, 63, 64, 65, 100)]

pytestmark = pytest.mark.usefixtures("instruction_set")


def _inputs(kind: str, matrix: Matrix, hidden: Floats, random: np.random.Generator) -> Arrays:
    outputs = len(matrix.bias)
    inputs = matrix.inputs(hidden)
    if kind in (operators.LINEAR_ADD, operators.LINEAR_ADD_NORMALIZATION):
        inputs["residual"] = random.standard_normal((len(hidden), outputs)).astype(np.float32)
    if kind == operators.LINEAR_ADD_NORMALIZATION:
        inputs["norm_weight"] = random.standard_normal(outputs).astype(np.float32)
        inputs["norm_bias"] = random.standard_normal(outputs).astype(np.float32)
    return inputs


def _expected(kind: str, matrix: Matrix, inputs: Arrays, *, is_positive: bool = False) -> Doubles:
    result = matrix.product(inputs["hidden"].astype(np.float32), is_positive=is_positive)
    if kind == operators.LINEAR_RELU:
        return np.maximum(result, 0)
    if "residual" in inputs:
        result = result + inputs["residual"].astype(np.float64)
    if "norm_weight" in inputs:
        weight, bias = (inputs[name].astype(np.float32) for name in ("norm_weight", "norm_bias"))
        return normalized(result, weight, bias, EPSILON["epsilon"])
    return result


def _assert_close(found: Doubles, expected: Doubles, steps: float = 1e-6) -> None:
    """Within `steps` of each row's largest number, for numbers of one row are sums of the same things."""
    allowed = steps * np.maximum(np.abs(expected).max(axis=-1, keepdims=True), 1.0)
    assert (np.abs(found - expected) <= allowed).all(), np.abs((found - expected) / allowed).max()


@pytest.mark.parametrize("kind", KINDS)
def test_products_of_every_size_equal_numpy(kind: str) -> None:
    random, operator = np.random.default_rng(0), OneOperator(kind, KINDS[kind])
    for inputs, outputs in SIZES:
        matrix = Matrix.random(random, inputs, outputs)
        for rows in NUM_ROWS:
            given_inputs = _inputs(kind, matrix, random_rows(random, rows, inputs), random)
            found = operator.run(given_inputs)["output"]
            assert found.shape == (rows, outputs)
            # A normalisation of a few numbers that are nearly equal makes their errors as large as they are.
            steps = 1e-3 if kind == operators.LINEAR_ADD_NORMALIZATION and outputs < 63 else 2e-6
            _assert_close(found.astype(np.float64), _expected(kind, matrix, given_inputs), steps)


@pytest.mark.parametrize("kind", KINDS)
def test_the_function_in_the_graph_computes_the_same(kind: str) -> None:
    random = np.random.default_rng(1)
    native, function = (OneOperator(kind, KINDS[kind], is_native=is_native) for is_native in (True, False))
    for inputs, outputs in ((8, 65), (256, 100)):
        matrix = Matrix.random(random, inputs, outputs)
        given_inputs = _inputs(kind, matrix, random_rows(random, 7, inputs), random)
        found, expected = (each.run(given_inputs)["output"].astype(np.float64) for each in (native, function))
        # It divides where the kernels multiply by an inverse: now and then a number is rounded to its other neighbour.
        _assert_close(found, expected, 0.02)
        assert np.median(np.abs(found - expected)) < 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("kind", [operators.LINEAR, operators.LINEAR_RELU])
def test_activations_that_are_never_negative_use_all_255_levels(kind: str) -> None:
    random, operator = np.random.default_rng(2), OneOperator(kind, POSITIVE)
    for rows, inputs, outputs in ((1, 4, 5), (7, 36, 65), (13, 256, 100)):
        matrix = Matrix.random(random, inputs, outputs)
        given_inputs = matrix.inputs(np.abs(random_rows(random, rows, inputs)))
        found = operator.run(given_inputs)["output"].astype(np.float64)
        _assert_close(found, _expected(kind, matrix, given_inputs, is_positive=True))


@pytest.mark.parametrize("kind", [operators.LINEAR_ADD, operators.LINEAR_ADD_NORMALIZATION])
@pytest.mark.parametrize("share_of_zeros", [0.0, 0.7, 0.97, 1.0])
def test_zeros_are_skipped_without_a_change(kind: str, share_of_zeros: float) -> None:
    random, operator = np.random.default_rng(8), OneOperator(kind, KINDS[kind] | POSITIVE)
    for rows in NUM_ROWS:
        for inputs, outputs in ((256, 64), (100, 200)):
            matrix = Matrix.random(random, inputs, outputs)
            hidden = np.abs(random_rows(random, rows, inputs))
            hidden[random.random(hidden.shape) < share_of_zeros] = 0.0
            given_inputs = _inputs(kind, matrix, hidden, random)
            found = operator.run(given_inputs)["output"]
            _assert_close(found.astype(np.float64), _expected(kind, matrix, given_inputs, is_positive=True), 2e-6)
            for row in {0, rows - 1}:
                of_row = {name: given_inputs[name][[row]] for name in ("hidden", "residual")}
                assert found[[row]].tobytes() == operator.run(given_inputs | of_row)["output"].tobytes()


@pytest.mark.parametrize("pair", [(64, 64), (127, 1), (-64, -64), (-1, -127), (127, -127)])
@pytest.mark.parametrize("is_native", [True, False])
def test_the_largest_sums_of_two_products_are_exact(pair: tuple[int, int], is_native: bool) -> None:
    numbers = np.tile(np.array(pair, np.int8)[:, None], (128, 65))
    matrix = Matrix(numbers, np.ones(65, np.float32), np.zeros(65, np.float32))
    found = OneOperator(operators.LINEAR, POSITIVE, is_native=is_native).run(
        matrix.inputs(np.ones((7, 256), np.float32))
    )
    np.testing.assert_allclose(found["output"], 128.0 * sum(pair), rtol=1e-5)


@pytest.mark.parametrize("pair", [(64, 64), (127, 1), (127, -2), (127, -3), (127, -127), (-127, 2), (-127, 127)])
def test_the_largest_sums_of_four_products_are_exact(pair: tuple[int, int]) -> None:
    numbers = np.tile(np.array(pair, np.int8)[:, None], (128, 65))
    matrix = Matrix(numbers, np.ones(65, np.float32), np.zeros(65, np.float32))
    hidden = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], np.float32)
    found = OneOperator(operators.LINEAR, SIGNED).run(matrix.inputs(np.tile(hidden, (5, 128))))
    expected = np.tile(128.0 * hidden @ np.array(pair, np.float32), 5)
    np.testing.assert_allclose(found["output"], np.repeat(expected[:, None], 65, axis=1), rtol=1e-5)


def test_rows_of_zeros_give_exactly_the_bias() -> None:
    random, matrix = np.random.default_rng(3), Matrix.random(np.random.default_rng(3), 36, 65)
    hidden = random_rows(random, 13, 36)
    hidden[[0, 5, 12]] = 0.0
    found = OneOperator(operators.LINEAR, SIGNED).run(matrix.inputs(hidden))["output"]
    assert (found[[0, 5, 12]] == matrix.bias).all()


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_huge_and_tiny_rows_are_multiplied_like_any_other(size: float) -> None:
    random = np.random.default_rng(5)
    matrix = Matrix.random(random, 36, 65)
    matrix = Matrix(matrix.numbers, matrix.scales, np.zeros_like(matrix.bias))
    hidden = (random.standard_normal((7, 36)) * size).astype(np.float32)
    hidden[3] = random.standard_normal(36)
    found = OneOperator(operators.LINEAR, SIGNED).run(matrix.inputs(hidden))["output"].astype(np.float64)
    np.testing.assert_allclose(found, matrix.product(hidden), rtol=1e-5, atol=1e-6 * min(size, 1.0))
