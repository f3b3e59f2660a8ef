"""SourceAttention: every position of a sentence looks at every other one."""

import numpy as np
import pytest

from export.int8 import operators
from tests.kernels.arithmetic import Doubles, attended
from tests.kernels.operator_sessions import Arrays, OneOperator

HEADS = 3
SOURCE_LEN = 21
LAST_POSITIONS = np.array([0, 20, 1, 15, 16, 7, 3], np.int32)

pytestmark = pytest.mark.usefixtures("instruction_set")


def _operator(head_dim: int, *, is_native: bool = True) -> OneOperator:
    attributes = {"num_heads": HEADS, "kv_num_heads": HEADS, "scale": head_dim**-0.5}
    return OneOperator(operators.SOURCE_ATTENTION, attributes, is_native=is_native)


def _inputs(head_dim: int, padding: float = np.nan) -> Arrays:
    """Fill the positions after each sentence, which must have no influence."""
    shape = (len(LAST_POSITIONS), SOURCE_LEN, 3 * HEADS * head_dim)
    fused = np.random.default_rng(head_dim).standard_normal(shape).astype(np.float32)
    fused[np.arange(SOURCE_LEN) > LAST_POSITIONS[:, None]] = padding
    return {"fused": fused, "last_positions": LAST_POSITIONS}


def _expected(inputs: Arrays, head_dim: int) -> list[Doubles]:
    """Return the results of each sentence [length, width]."""
    sentences = []
    for fused, last in zip(inputs["fused"].astype(np.float64), LAST_POSITIONS, strict=True):
        parts = fused[: last + 1].reshape(last + 1, 3, HEADS, head_dim)
        queries, keys, values = np.moveaxis(parts, (1, 2), (0, 1))
        sentence = attended(queries, keys, values, head_dim**-0.5)  # [heads, length, head_dim]
        sentences.append(np.moveaxis(sentence, 0, 1).reshape(last + 1, -1))
    return sentences


@pytest.mark.parametrize("head_dim", [8, 16, 24, 32, 64, 72])
def test_sentences_of_any_length_equal_numpy_and_what_is_behind_them_becomes_zero(head_dim: int) -> None:
    inputs = _inputs(head_dim)
    found = _operator(head_dim).run(inputs)["output"]
    for row, expected in zip(found, _expected(inputs, head_dim), strict=True):
        np.testing.assert_allclose(row[: len(expected)], expected, rtol=1e-5, atol=1e-6)
        assert not row[len(expected) :].any()


def test_the_function_in_the_graph_computes_the_same() -> None:
    # ONNX Runtime multiplies probabilities of nothing with what stands behind a sentence.
    inputs = _inputs(32, padding=1.0)
    native, function = (_operator(32, is_native=is_native).run(inputs)["output"] for is_native in (True, False))
    for found, expected, last in zip(native, function, LAST_POSITIONS, strict=True):
        np.testing.assert_allclose(found[: last + 1], expected[: last + 1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("head_dim", [8, 64, 72])
def test_biased_attention_adds_the_bias_of_each_offset(head_dim: int) -> None:
    inputs = _inputs(head_dim, padding=1.0)
    num_offsets = 2 * SOURCE_LEN + 3
    biases = np.random.default_rng(1).standard_normal((HEADS, num_offsets)).astype(np.float32)
    attributes = {"num_heads": HEADS, "kv_num_heads": HEADS, "scale": head_dim**-0.5}
    native, function = (
        OneOperator(operators.BIASED_SOURCE_ATTENTION, attributes, is_native=is_native).run(
            inputs | {"biases": biases}
        )["output"]
        for is_native in (True, False)
    )
    for row, last in enumerate(LAST_POSITIONS):
        parts = inputs["fused"][row, : last + 1].astype(np.float64).reshape(last + 1, 3, HEADS, head_dim)
        queries, keys, values = np.moveaxis(parts, (1, 2), (0, 1))  # [heads, length, head_dim]
        places = np.arange(last + 1)
        offsets = places - places[:, None] + num_offsets // 2
        scores = queries @ keys.transpose(0, 2, 1) * head_dim**-0.5 + biases[:, offsets]
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        expected = weights / weights.sum(axis=-1, keepdims=True) @ values
        expected = np.moveaxis(expected, 0, 1).reshape(last + 1, -1)
        np.testing.assert_allclose(native[row, : last + 1], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(function[row, : last + 1], expected, rtol=1e-4, atol=1e-5)
        assert not native[row, last + 1 :].any()
