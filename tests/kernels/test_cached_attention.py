"""SelfAttention and CrossAttention: one token for each row over an int8 cache."""

from collections.abc import Mapping

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from export.int8 import operators
from kernels.layout import from_native
from tests.kernels.arithmetic import STEP, Doubles, Floats, assert_attends, attended_in_levels, in_steps
from tests.kernels.operator_sessions import Arrays, Numbers, OneOperator

HEADS = 3
HEAD_DIMS = [8, 16, 24, 32, 64, 72]
# Ragged: the first position, both sides of four keys and of sixteen scores, the last one.
POSITIONS = np.array([0, 1, 2, 3, 4, 14, 15, 16, 17, 31, 32, 36], np.int32)
CACHE_LEN = 37
ROWS = len(POSITIONS)
UNUSED = 127
CACHE_NAMES = ("keys", "values")

pytestmark = pytest.mark.usefixtures("instruction_set")


def _operator(name: str, head_dim: int, *, is_native: bool = True, threads: int = 1) -> OneOperator:
    attributes = {"num_heads": HEADS, "kv_num_heads": HEADS, "scale": head_dim**-0.5, "step": STEP}
    return OneOperator(name, attributes, is_native=is_native, threads=threads)


def _cache(random: np.random.Generator, head_dim: int, lengths: NDArray[np.int32]) -> Arrays:
    """Caches whose first `lengths` positions are filled."""
    shape = (ROWS, HEADS, CACHE_LEN, head_dim)
    filled = (np.arange(CACHE_LEN) < lengths[:, None])[:, None, :, None]
    return {
        name: np.where(filled, random.integers(-128, 128, shape), UNUSED).astype(np.int8) for name in CACHE_NAMES
    } | {"positions": POSITIONS}


def _self_inputs(head_dim: int) -> Arrays:
    random, width = np.random.default_rng(head_dim), HEADS * head_dim
    # Some are outside what the cache can keep.
    fused = (random.standard_normal((ROWS, 1, 3 * width)) * 0.6).astype(np.float32)
    return {"fused": fused} | _cache(random, head_dim, POSITIONS)


def _cross_inputs(head_dim: int) -> Arrays:
    random, width = np.random.default_rng(head_dim), HEADS * head_dim
    cache = _cache(random, head_dim, POSITIONS + 1)
    query = random.standard_normal((ROWS, 1, width)).astype(np.float32)
    last: Arrays = {}
    for name in CACHE_NAMES:
        in_cache = cache[name].astype(np.float32)[np.arange(ROWS), :, POSITIONS]
        last[f"last_{name.removesuffix('s')}"] = in_cache.reshape(ROWS, 1, width) * np.float32(STEP)
    return {"query": query} | last | cache


def _in_heads(vectors: Floats, head_dim: int) -> Floats:
    return vectors.reshape(ROWS, HEADS, head_dim)


def _expected_cache(inputs: Arrays, head_dim: int) -> Numbers:
    """With the new keys and values at their positions."""
    width = HEADS * head_dim
    caches: Numbers = {}
    for kind, name in enumerate(CACHE_NAMES, start=1):
        new = inputs["fused"][:, 0, kind * width : (kind + 1) * width].astype(np.float32)
        caches[name] = inputs[name].astype(np.int8)
        caches[name][np.arange(ROWS), :, POSITIONS] = in_steps(_in_heads(new, head_dim))
    return caches


def _expected(
    query: Floats, caches: Mapping[str, NDArray[np.generic]], head_dim: int, biases: Floats | None = None
) -> Doubles:
    rows = []
    for row, position in enumerate(POSITIONS):
        keys, values = (caches[name][row, :, : position + 1].astype(np.int8) for name in CACHE_NAMES)
        of_row = None if biases is None else biases[:, -position - 1 :].astype(np.float64)
        attended = attended_in_levels(_in_heads(query, head_dim)[row], keys, values, head_dim**-0.5, of_row)
        rows.append(attended.reshape(1, -1))
    return np.stack(rows)


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_self_attention_equals_numpy_and_keeps_the_new_keys_and_values(head_dim: int) -> None:
    inputs = _self_inputs(head_dim)
    found = _operator(operators.SELF_ATTENTION, head_dim).run(inputs)
    caches = _expected_cache(inputs, head_dim)
    query = inputs["fused"][:, 0, : HEADS * head_dim].astype(np.float32)
    assert_attends(found["output"].astype(np.float32), _expected(query, caches, head_dim))
    assert (np.abs(caches["keys"][:, :, 0].astype(int)) >= 127).any(), "nothing was outside what the cache can keep"
    for name in CACHE_NAMES:
        assert np.array_equal(found[f"present_{name}"], caches[name])


@pytest.mark.parametrize("head_dim", HEAD_DIMS)
def test_cross_attention_equals_numpy_and_leaves_its_cache_alone(head_dim: int) -> None:
    inputs = _cross_inputs(head_dim)
    found = _operator(operators.CROSS_ATTENTION, head_dim).run(inputs)
    query = inputs["query"].astype(np.float32)
    assert_attends(found["output"].astype(np.float32), _expected(query, inputs, head_dim))
    for name in CACHE_NAMES:
        assert np.array_equal(found[f"present_{name}"], inputs[name])


@pytest.mark.parametrize("name", [operators.SELF_ATTENTION, operators.CROSS_ATTENTION])
@pytest.mark.parametrize("head_dim", [16, 64])
def test_the_function_in_the_graph_computes_the_same(name: str, head_dim: int) -> None:
    inputs = _self_inputs(head_dim) if name == operators.SELF_ATTENTION else _cross_inputs(head_dim)
    native, function = (_operator(name, head_dim, is_native=is_native).run(inputs) for is_native in (True, False))
    np.testing.assert_allclose(native["output"], function["output"], rtol=1e-4, atol=1e-4)
    for kind in CACHE_NAMES:
        present = f"present_{kind}"
        # Half a step may be rounded up or down; the content of unused positions is arbitrary.
        used = np.broadcast_to((np.arange(CACHE_LEN) <= POSITIONS[:, None])[:, None, :, None], native[present].shape)
        difference = native[present].astype(int)[used] - function[present].astype(int)[used]
        assert np.abs(difference).max() <= 1
        assert (difference != 0).mean() < 1e-3


@pytest.mark.parametrize("name", [operators.SELF_ATTENTION, operators.CROSS_ATTENTION])
def test_a_cache_bound_as_input_and_output_is_changed_in_place(name: str) -> None:
    head_dim = 32
    inputs = _self_inputs(head_dim) if name == operators.SELF_ATTENTION else _cross_inputs(head_dim)
    operator = _operator(name, head_dim)
    apart = operator.run(inputs)
    binding, values = operator.session.io_binding(), []
    binding.bind_output("output")
    for key, array in operator.fed(inputs).items():
        value = ort.OrtValue.ortvalue_from_numpy(array.copy())
        values.append(value)
        binding.bind_ortvalue_input(key, value)
        if key in CACHE_NAMES:
            binding.bind_ortvalue_output(f"present_{key}", value)
    operator.session.run_with_iobinding(binding)
    (output, *_) = binding.get_outputs()
    assert np.array_equal(output.numpy(), apart["output"])
    for key, value in zip(inputs, values, strict=True):
        if key in CACHE_NAMES:
            assert np.array_equal(from_native(value.numpy()), apart[f"present_{key}"])


@pytest.mark.parametrize("name", [operators.SELF_ATTENTION, operators.BIASED_SELF_ATTENTION])
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_share_a_cache_are_a_sequence_with_the_bits_of_one_token_after_another(
    name: str, threads: int
) -> None:
    head_dim, first, last = 64, 3, 36
    random, width = np.random.default_rng(7), HEADS * head_dim
    cache: Arrays = {
        kind: random.integers(-128, 128, (1, HEADS, CACHE_LEN, head_dim)).astype(np.int8) for kind in CACHE_NAMES
    }
    if name == operators.BIASED_SELF_ATTENTION:
        cache["biases"] = random.standard_normal((HEADS, CACHE_LEN)).astype(np.float32)
    fused = random.standard_normal((last - first, 1, 3 * width)).astype(np.float32)
    positions = np.arange(first, last, dtype=np.int32)
    operator = _operator(name, head_dim, threads=threads)
    at_once = operator.run({"fused": fused, "positions": positions} | cache)
    outputs, state = [], dict(cache)
    for index in range(len(positions)):
        found = operator.run(state | {"fused": fused[index : index + 1], "positions": positions[index : index + 1]})
        state |= {kind: found[f"present_{kind}"] for kind in CACHE_NAMES}
        outputs.append(found["output"])
    assert np.array_equal(at_once["output"], np.concatenate(outputs))
    for kind in CACHE_NAMES:
        assert np.array_equal(at_once[f"present_{kind}"], state[kind])


def test_queries_that_fit_one_key_alone_find_it() -> None:
    """Scores far apart: all but one exponential are next to nothing."""
    inputs = _cross_inputs(32)
    query = inputs["query"].astype(np.float32) * np.float32(1e4)
    found = _operator(operators.CROSS_ATTENTION, 32).run(inputs | {"query": query})["output"]
    expected = _expected(query, inputs, 32)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_query_that_is_not_finite_has_no_result_and_other_heads_have_theirs(number: float) -> None:
    inputs = _cross_inputs(16)
    query = inputs["query"].astype(np.float32)
    query[3, 0, 16 + 5] = number
    found = _operator(operators.CROSS_ATTENTION, 16).run(inputs | {"query": query})["output"].reshape(ROWS, HEADS, 16)
    is_nan = np.zeros((ROWS, HEADS, 16), bool)
    is_nan[3, 1] = True
    assert np.array_equal(np.isnan(found.astype(np.float32)), is_nan)


@pytest.mark.parametrize("head_dim", [8, 64, 72])
def test_biased_self_attention_adds_the_bias_of_each_distance(head_dim: int) -> None:
    inputs = _self_inputs(head_dim)
    biases = np.random.default_rng(1).standard_normal((HEADS, CACHE_LEN + 3)).astype(np.float32)
    native, function = (
        _operator(operators.BIASED_SELF_ATTENTION, head_dim, is_native=is_native).run(inputs | {"biases": biases})
        for is_native in (True, False)
    )
    query = inputs["fused"][:, 0, : HEADS * head_dim].astype(np.float32)
    expected = _expected(query, _expected_cache(inputs, head_dim), head_dim, biases)
    assert_attends(native["output"].astype(np.float32), expected)
    np.testing.assert_allclose(function["output"], expected, rtol=1e-4, atol=2e-4)
