"""CrossAttention whose rows share caches: every row has the bits that it gets from a cache of its own."""

import numpy as np
import pytest
from numpy.typing import NDArray

from export.int8 import operators
from tests.kernels.arithmetic import STEP, Floats
from tests.kernels.instruction_sets import INSTRUCTION_SETS
from tests.kernels.operator_sessions import Arrays, OneOperator

HEADS = 3
CACHE_LEN = 37
NUM_CACHES = 9
PLACE_UNIT = 1 << 16
# Four rows are attended together, others alone; both sides of two values, of four keys and of sixteen scores.
ROWS_OF_CACHES = {0: (1, 1), 1: (4, 2), 2: (5, 3), 4: (8, 4), 5: (4, 15), 6: (3, 16), 7: (4, 17), 8: (4, CACHE_LEN)}


def _operator(head_dim: int, threads: int = 1, heads: int = HEADS) -> OneOperator:
    attributes = {"num_heads": heads, "kv_num_heads": heads, "scale": head_dim**-0.5, "step": STEP}
    return OneOperator(operators.CROSS_ATTENTION, attributes, threads=threads)


def _shared(
    rows_of_caches: dict[int, tuple[int, int]], num_caches: int, cache_len: int, head_dim: int, heads: int = HEADS
) -> tuple[Arrays, NDArray[np.intp]]:
    """Return inputs from numbers of rows and positions by cache, and each row's cache. Rows are in any order."""
    random = np.random.default_rng(head_dim)
    caches = np.repeat(list(rows_of_caches), [rows for rows, _ in rows_of_caches.values()])
    random.shuffle(caches)
    lengths = np.array([rows_of_caches[cache][1] for cache in caches.tolist()])
    query = random.standard_normal((caches.size, 1, heads * head_dim)).astype(np.float32)
    shape = (num_caches, heads, cache_len, head_dim)
    inputs: Arrays = {"query": query, "last_key": query, "last_value": query}
    inputs |= {name: random.integers(-128, 128, shape).astype(np.int8) for name in ("keys", "values")}
    inputs["positions"] = (lengths - 1 + (caches - np.arange(caches.size)) * PLACE_UNIT).astype(np.int32)
    return inputs, caches


def _with_copies(inputs: Arrays, caches: NDArray[np.intp]) -> Arrays:
    """Return the same inputs with a cache for each row."""
    copies = {name: inputs[name][caches] for name in ("keys", "values")}
    return inputs | copies | {"positions": (inputs["positions"].astype(np.int32) & 0xFFFF).astype(np.int32)}


def _outputs(operator: OneOperator, inputs: Arrays) -> Floats:
    return operator.run(inputs)["output"].astype(np.float32)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("head_dim", [8, 16, 32, 64, 72, 128])
def test_rows_that_share_a_cache_get_the_bits_of_rows_with_copies(head_dim: int) -> None:
    operator = _operator(head_dim)
    inputs, caches = _shared(ROWS_OF_CACHES, NUM_CACHES, CACHE_LEN, head_dim)
    found = operator.run(inputs)
    assert found["output"].tobytes() == operator.run(_with_copies(inputs, caches))["output"].tobytes()
    for name in ("keys", "values"):
        assert np.array_equal(found[f"present_{name}"], inputs[name])


@pytest.mark.usefixtures("instruction_set")
def test_rows_of_any_shape_get_the_bits_of_rows_with_copies() -> None:
    numbers = np.random.default_rng(0)
    for _ in range(15):
        heads, head_dim, cache_len = (int(numbers.integers(1, most + 1)) for most in (16, 256, 60))
        of_caches = {
            cache: (int(numbers.integers(1, 10)), int(numbers.integers(1, cache_len + 1))) for cache in range(4)
        }
        operator = _operator(head_dim, heads=heads)
        inputs, caches = _shared(of_caches, 4, cache_len, head_dim, heads)
        expected = _outputs(operator, _with_copies(inputs, caches))
        assert _outputs(operator, inputs).tobytes() == expected.tobytes(), (heads, head_dim, of_caches)


@pytest.mark.usefixtures("instruction_set")
def test_threads_that_share_the_work_give_the_same_bits() -> None:
    of_caches = {cache: (1 + cache % 7, 60 + cache % 8) for cache in range(40)}
    inputs, _ = _shared(of_caches, 40, 67, 32)
    expected = _outputs(_operator(32), inputs)
    operator = _operator(32, threads=2)
    for _ in range(5):
        assert _outputs(operator, inputs).tobytes() == expected.tobytes()


def test_every_instruction_set_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, _ = _shared(ROWS_OF_CACHES, NUM_CACHES, CACHE_LEN, 64)
    found = set()
    for name in INSTRUCTION_SETS:
        monkeypatch.setenv("KVASIR_KERNELS", name)
        found.add(_outputs(_operator(64), inputs).tobytes())
    assert len(found) == 1


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("length", [1023, 1024, 1025, 1600])
def test_the_largest_sums_are_exact(length: int) -> None:
    """Equal keys and extreme values: the sums of integers are as large as possible."""
    operator = _operator(16)
    inputs, caches = _shared({0: (4, length)}, 1, length, 16)
    inputs["keys"] = np.full_like(inputs["keys"], 3)
    inputs["values"] = np.full_like(inputs["values"], -128)
    found = _outputs(operator, inputs)
    assert found.tobytes() == _outputs(operator, _with_copies(inputs, caches)).tobytes()
    np.testing.assert_allclose(found, -128 * STEP, rtol=1e-6)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_query_that_is_not_finite_leaves_the_others_their_results(number: float) -> None:
    operator = _operator(16)
    inputs, _ = _shared({0: (4, 11)}, 1, 11, 16)
    expected = _outputs(operator, inputs).reshape(4, HEADS, 16)
    query = inputs["query"].astype(np.float32)
    query[2, 0, 16 + 5] = number
    found = _outputs(operator, inputs | {"query": query}).reshape(4, HEADS, 16)
    assert np.isnan(found[2, 1]).all()
    found[2, 1] = expected[2, 1]
    assert found.tobytes() == expected.tobytes()
