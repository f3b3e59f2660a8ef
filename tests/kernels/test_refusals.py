"""Wrong sizes and positions are refused with a message; nothing is read or written outside of what was given."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from export.int8 import operators
from export.int8.operators import BEST_TOKENS
from tests.kernels.arithmetic import STEP, Matrix
from tests.kernels.operator_sessions import Arrays, OneOperator

LINEAR = {"zero_point": 128, "levels": 127.0}
RANKING = LINEAR | {"block_size": 1, "last_token": 64}
ATTENTION = {"num_heads": 2, "kv_num_heads": 2, "scale": 0.25}
CACHED = ATTENTION | {"step": STEP}
INPUTS, OUTPUTS, ROWS, WIDTH, CACHE_LEN = 8, 65, 3, 32, 7

pytestmark = pytest.mark.usefixtures("instruction_set")


def _linear() -> Arrays:
    return Matrix.random(np.random.default_rng(0), INPUTS, OUTPUTS).inputs(np.ones((ROWS, INPUTS), np.float32))


def _normalized() -> Arrays:
    ones = np.ones(OUTPUTS, np.float32)
    return _linear() | {"residual": np.ones((ROWS, OUTPUTS), np.float32), "norm_weight": ones, "norm_bias": ones}


def _ranked() -> Arrays:
    choice = {"num_candidates": np.array([2], np.int64), "with_scores": np.array([True])}
    return _linear() | {"mask": np.zeros(OUTPUTS, np.float32)} | choice


def _cached() -> Arrays:
    cache = np.zeros((ROWS, 2, CACHE_LEN, WIDTH // 2), np.int8)
    fused = np.ones((ROWS, 1, 3 * WIDTH), np.float32)
    return {"fused": fused, "keys": cache, "values": cache, "positions": np.zeros(ROWS, np.int32)}


def _crossed() -> Arrays:
    query = np.ones((ROWS, 1, WIDTH), np.float32)
    given = _cached()
    del given["fused"]
    return {"query": query, "last_key": query, "last_value": query} | given


def _embedded() -> Arrays:
    weight = operators.in_panels(np.ones((INPUTS, OUTPUTS), np.int8))
    return {"tokens": _positions(0, OUTPUTS - 1), "weight": weight, "scales": np.ones(OUTPUTS, np.float32)}


def _source() -> Arrays:
    return {"fused": np.ones((ROWS, 5, 3 * WIDTH), np.float32), "last_positions": np.zeros(ROWS, np.int32)}


GOOD: dict[str, tuple[Mapping[str, float], Callable[[], Arrays]]] = {
    operators.EMBED_TOKENS: ({"width": INPUTS}, _embedded),
    operators.LINEAR: (LINEAR, _linear),
    operators.LINEAR_ADD_NORMALIZATION: (LINEAR | {"epsilon": 1e-5}, _normalized),
    BEST_TOKENS: (RANKING, _ranked),
    operators.SELF_ATTENTION: (CACHED, _cached),
    operators.CROSS_ATTENTION: (CACHED, _crossed),
    operators.SOURCE_ATTENTION: (ATTENTION, _source),
}


def _floats(*shape: int) -> np.typing.NDArray[np.float32]:
    return np.ones(shape, np.float32)


def _positions(*values: int) -> np.typing.NDArray[np.int32]:
    return np.array(values, np.int32)


def _int64(*values: int) -> np.typing.NDArray[np.int64]:
    return np.array(values, np.int64)


BAD = [
    (operators.EMBED_TOKENS, {"tokens": _positions(0, OUTPUTS)}, "a token is outside the vocabulary"),
    (operators.EMBED_TOKENS, {"tokens": _positions(-1)}, "a token is outside the vocabulary"),
    (operators.EMBED_TOKENS, {"tokens": _positions(0).reshape(1, 1, 1, 1)}, "more than three dimensions"),
    (operators.EMBED_TOKENS, {"scales": _floats(2 * 64 + 1)}, "does not fit its width and scales"),
    (operators.EMBED_TOKENS, {"weight": np.zeros(12, np.int8)}, "does not fit its width and scales"),
    (operators.LINEAR, {"hidden": _floats(ROWS, 6)}, "a weight does not fit its input"),
    (operators.LINEAR, {"hidden": _floats(ROWS, 12)}, "a weight does not fit its input"),
    (operators.LINEAR, {"hidden": _floats()}, "hidden states have no dimensions"),
    (operators.LINEAR, {"bias": _floats(OUTPUTS - 1)}, "scales, sums and bias differ in size"),
    (operators.LINEAR, {"sums": _positions(1)}, "scales, sums and bias differ in size"),
    (operators.LINEAR, {"scales": _floats(OUTPUTS + 64)}, "a weight does not fit its input"),
    (operators.LINEAR, {"hidden": _floats(1, 1, 1, 1, INPUTS)}, "more than four dimensions"),
    (operators.LINEAR_ADD_NORMALIZATION, {"residual": _floats(ROWS - 1, OUTPUTS)}, "a residual has another size"),
    (operators.LINEAR_ADD_NORMALIZATION, {"norm_weight": _floats(OUTPUTS - 1)}, "a normalisation has another size"),
    (BEST_TOKENS, {"mask": _floats(OUTPUTS - 1)}, "the mask or an option of a ranking has the wrong size"),
    (BEST_TOKENS, {"num_candidates": _int64(OUTPUTS + 1)}, "candidates must be from 0 to"),
    (BEST_TOKENS, {"num_candidates": _int64(-1)}, "candidates must be from 0 to"),
    (BEST_TOKENS, {"num_candidates": _int64()}, "the mask or an option of a ranking has the wrong size"),
    (operators.SELF_ATTENTION, {"positions": _positions(0, CACHE_LEN, 0)}, "a position is outside the cache"),
    (operators.SELF_ATTENTION, {"positions": _positions(0, 0, -1)}, "a position is outside the cache"),
    (operators.SELF_ATTENTION, {"positions": _positions(0, 0)}, "queries do not fit the cache"),
    (operators.SELF_ATTENTION, {"fused": _floats(ROWS, 1, WIDTH)}, "queries do not fit the cache"),
    (operators.SELF_ATTENTION, {"keys": np.zeros((ROWS, 2, 6, 16), np.int8)}, "caches differ in size"),
    (operators.SELF_ATTENTION, {"keys": np.zeros((ROWS, 2, 7 * 16), np.int8)}, "caches differ in size"),
    (operators.CROSS_ATTENTION, {"positions": _positions(0, CACHE_LEN, 0)}, "a position is outside the cache"),
    (
        operators.CROSS_ATTENTION,
        {"positions": _positions(0, CACHE_LEN + (1 << 16), 0)},
        "a position is outside the cache",
    ),
    (operators.CROSS_ATTENTION, {"positions": _positions(0, 0, 1 << 16)}, "a row is outside the cache"),
    (operators.CROSS_ATTENTION, {"positions": _positions(-1 << 16, 0, 0)}, "a row is outside the cache"),
    (operators.CROSS_ATTENTION, {"positions": _positions(0, 0)}, "queries do not fit the cache"),
    (operators.CROSS_ATTENTION, {"query": _floats(ROWS, 1, 3 * WIDTH)}, "queries do not fit the cache"),
    (operators.SOURCE_ATTENTION, {"fused": _floats(ROWS, 5, 3 * WIDTH + 1)}, "do not divide into heads"),
    (operators.SOURCE_ATTENTION, {"fused": _floats(ROWS, 15 * WIDTH)}, "do not divide into heads"),
    (operators.SOURCE_ATTENTION, {"last_positions": _positions(0, 5, 0)}, "a last position is outside the source"),
    (operators.SOURCE_ATTENTION, {"last_positions": _positions(0, 0, -1)}, "a last position is outside the source"),
    (operators.SOURCE_ATTENTION, {"last_positions": _positions(0)}, "one last position for each row"),
]


@pytest.mark.parametrize("name", GOOD)
def test_what_is_changed_below_runs_as_it_is(name: str) -> None:
    attributes, inputs = GOOD[name]
    OneOperator(name, attributes).run(inputs())


@pytest.mark.parametrize(("name", "wrong", "message"), BAD)
def test_wrong_inputs_are_refused_by_name(name: str, wrong: Arrays, message: str) -> None:
    attributes, inputs = GOOD[name]
    operator = OneOperator(name, attributes)
    with pytest.raises(Exception, match=f"kvasir: .*{message}"):
        operator.run(inputs() | wrong)
    operator.run(inputs())


@pytest.mark.parametrize(("dimensions", "num_heads"), [((ROWS, 2, CACHE_LEN, 16), 4), ((ROWS, 1, CACHE_LEN, 257), 1)])
def test_heads_of_another_number_or_too_large_are_refused(dimensions: tuple[int, ...], num_heads: int) -> None:
    cache = np.zeros(dimensions, np.int8)
    fused = _floats(ROWS, 1, 3 * dimensions[1] * dimensions[3])
    operator = OneOperator(operators.SELF_ATTENTION, CACHED | {"num_heads": num_heads, "kv_num_heads": num_heads})
    with pytest.raises(Exception, match="kvasir: heads are too large or their number differs"):
        operator.run(_cached() | {"fused": fused, "keys": cache, "values": cache})


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        (operators.LINEAR, LINEAR | {"zero_point": 5}, "must be 0 or 128"),
        (operators.SELF_ATTENTION, CACHED | {"num_heads": 0}, "`num_heads` must be at least 1"),
    ],
)
def test_wrong_attributes_are_refused_when_the_graph_is_loaded(
    name: str, attributes: dict[str, float], message: str
) -> None:
    with pytest.raises(Exception, match=f"kvasir: .*{message}"):
        OneOperator(name, attributes)
