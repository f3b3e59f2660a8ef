"""BestTokens: the best of a projection's logits, which are those of Linear bit for bit, and their log normaliser."""

import numpy as np
import pytest
from numpy.typing import NDArray

from export.int8 import operators
from export.int8.operators import BEST_LISTED_TOKENS, BEST_TOKENS
from tests.kernels.arithmetic import Floats, Matrix, random_rows
from tests.kernels.operator_sessions import Arrays, Numbers, OneOperator

SIGNED = {"zero_point": 128, "levels": 127.0}
INPUTS = 32
CHUNK = 1024  # columns that are looked through together

pytestmark = pytest.mark.usefixtures("instruction_set")


def _ranking(vocab: int) -> dict[str, float]:
    return SIGNED | {"block_size": 1, "last_token": vocab - 1}


def _matrix(vocab: int, seed: int = 0) -> Matrix:
    return Matrix.random(np.random.default_rng(seed), INPUTS, vocab)


def _rank(
    matrix: Matrix, hidden: Floats, mask: Floats, num_candidates: int, *, with_scores: bool = True, native: bool = True
) -> Numbers:
    ranking: Arrays = {
        "mask": mask,
        "num_candidates": np.array([num_candidates], np.int64),
        "with_scores": np.array([with_scores]),
    }
    operator = OneOperator(BEST_TOKENS, _ranking(len(mask)), is_native=native)
    return operator.run(matrix.inputs(hidden) | ranking)


def _logits(matrix: Matrix, hidden: Floats) -> Floats:
    return OneOperator(operators.LINEAR, SIGNED).run(matrix.inputs(hidden))["output"].astype(np.float32)


def _best_first(logits: Floats) -> NDArray[np.int64]:
    """Order equal logits by token."""
    return np.argsort(-logits, axis=1, kind="stable")


def _log_sum(logits: Floats) -> NDArray[np.float64]:
    exact = logits.astype(np.float64)
    largest = exact.max(axis=1)
    total: NDArray[np.float64] = largest + np.log(np.exp(exact - largest[:, None]).sum(axis=1))
    return total


@pytest.mark.parametrize("vocab", [1, 15, 64, 100, CHUNK, CHUNK + 1, 5000])
@pytest.mark.parametrize("rows", [1, 7])
def test_the_best_tokens_are_found_in_order_with_their_logits(vocab: int, rows: int) -> None:
    matrix, hidden = _matrix(vocab), random_rows(np.random.default_rng(1), rows, INPUTS)
    mask = np.zeros(vocab, np.float32)
    logits = _logits(matrix, hidden)
    for num_candidates in {1, min(5, vocab), min(60, vocab), vocab}:
        found = _rank(matrix, hidden, mask, num_candidates)
        expected = _best_first(logits)[:, :num_candidates]
        assert np.array_equal(found["tokens"], expected)
        assert np.array_equal(found["logits"], np.take_along_axis(logits, expected, axis=1))


def test_of_equal_logits_the_first_token_wins() -> None:
    # Columns repeat within a vector, across vectors and across chunks.
    distinct, vocab = _matrix(10), 3 * CHUNK + 7
    columns = np.random.default_rng(2).integers(0, 10, vocab)
    matrix = Matrix(distinct.numbers[:, columns], distinct.scales[columns], distinct.bias[columns])
    hidden = random_rows(np.random.default_rng(3), 5, INPUTS)
    logits = _logits(matrix, hidden)
    assert len(np.unique(logits[0])) == 10
    for num_candidates in (1, 4, 8, 500, vocab):
        found = _rank(matrix, hidden, np.zeros(vocab, np.float32), num_candidates)
        assert np.array_equal(found["tokens"], _best_first(logits)[:, :num_candidates])


@pytest.mark.parametrize("num_candidates", [1, 2, 8, 20])
def test_masked_tokens_are_no_candidates_but_count_in_the_normalizer(num_candidates: int) -> None:
    matrix, hidden = _matrix(2500), random_rows(np.random.default_rng(4), 6, INPUTS)
    logits = _logits(matrix, hidden)
    masked = np.unique(np.concatenate([_best_first(logits)[:, :3].ravel(), np.arange(CHUNK, CHUNK + 40)]))
    mask = np.zeros(2500, np.float32)
    mask[masked] = -np.inf
    found = _rank(matrix, hidden, mask, num_candidates)
    assert np.array_equal(found["tokens"], _best_first(logits + mask)[:, :num_candidates])
    np.testing.assert_allclose(found["log_normalizer"], _log_sum(logits), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("num_candidates", [4, 8, 10])
def test_where_candidates_run_out_the_rest_are_tokens_with_no_chance(num_candidates: int) -> None:
    matrix, hidden = _matrix(40), random_rows(np.random.default_rng(5), 3, INPUTS)
    mask = np.full(40, -np.inf, np.float32)
    mask[[3, 17, 39]] = 0.0
    found = _rank(matrix, hidden, mask, num_candidates)
    assert np.array_equal(found["tokens"][:, :3], _best_first(_logits(matrix, hidden) + mask)[:, :3])
    assert (found["logits"][:, 3:] == -np.inf).all()
    assert ((found["tokens"] >= 0) & (found["tokens"] < 40)).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_normalizer_is_the_logarithm_of_the_sum_of_all_exponentials(scale: float) -> None:
    matrix, random = _matrix(5000), np.random.default_rng(7)
    hidden = (random.standard_normal((9, INPUTS)) * scale).astype(np.float32)
    found = _rank(matrix, hidden, np.zeros(5000, np.float32), 4)
    np.testing.assert_allclose(found["log_normalizer"], _log_sum(_logits(matrix, hidden)), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_numbers_leaves_the_others_alone_and_names_tokens(poison: float) -> None:
    matrix, hidden = _matrix(5000), random_rows(np.random.default_rng(9), 9, INPUTS)
    mask = np.zeros(5000, np.float32)
    healthy = _rank(matrix, hidden, mask, 12)
    hidden[4] = poison
    hidden[6, 3] = poison
    found = _rank(matrix, hidden, mask, 12)
    others = [0, 1, 2, 3, 5, 7, 8]
    for name in ("tokens", "logits", "log_normalizer"):
        assert np.array_equal(found[name][others], healthy[name][others])
    assert ((found["tokens"] >= 0) & (found["tokens"] < 5000)).all()


def test_without_candidates_nothing_is_multiplied() -> None:
    matrix, hidden, mask = _matrix(100), np.ones((3, INPUTS), np.float32), np.zeros(100, np.float32)
    for found in (
        _rank(matrix, hidden, mask, 0),
        _listed(matrix, hidden, mask, [[4, 5]], [0, -1, 0], num_candidates=0),
    ):
        assert found["tokens"].shape == found["logits"].shape == (3, 0)
        assert np.isnan(found["log_normalizer"].astype(np.float32)).all()


@pytest.mark.parametrize("with_scores", [True, False])
def test_the_function_in_the_graph_finds_the_same(with_scores: bool) -> None:
    matrix, hidden = _matrix(2000), random_rows(np.random.default_rng(10), 9, INPUTS)
    mask = np.where(np.arange(2000) % 7, 0.0, -np.inf).astype(np.float32)
    native, function = (
        _rank(matrix, hidden, mask, 5, with_scores=with_scores, native=native) for native in (True, False)
    )
    # An activation that is rounded to its other neighbour moves every logit of its row.
    for name in ("logits", "log_normalizer"):
        np.testing.assert_allclose(native[name], function[name], rtol=0.02, atol=0.02)
    assert (native["tokens"] == function["tokens"]).mean() > 0.9


def _listed(
    matrix: Matrix,
    hidden: Floats,
    mask: Floats,
    lists: list[list[int]],
    list_of_row: list[int],
    *,
    native: bool = True,
    num_candidates: int = 5,
) -> Numbers:
    capacity = max(map(len, lists)) + 3
    # After the end of a list is what an earlier one left there.
    tokens = np.full((len(lists), capacity), 10**8, np.int32)
    for index, each in enumerate(lists):
        tokens[index, : len(each)] = each
    inputs: Arrays = {
        "mask": mask,
        "num_candidates": np.array([num_candidates], np.int64),
        "with_scores": np.array([True]),
        "lists": tokens,
        "lengths": np.array([len(each) for each in lists], np.int32),
        "list_of_row": np.array(list_of_row, np.int32),
    }
    operator = OneOperator(BEST_LISTED_TOKENS, _ranking(len(mask)), is_native=native)
    return operator.run(matrix.inputs(hidden) | inputs)


# Twice as many rows have longer lists than there are columns: with AMX all columns are multiplied.
@pytest.mark.parametrize(("inputs", "copies"), [(32, 1), (64, 1), (100, 1), (64, 2), (100, 2)])
def test_rows_with_a_list_have_its_tokens_only_and_others_all(inputs: int, copies: int) -> None:
    vocab, random = 3000, np.random.default_rng(11)
    matrix, hidden = Matrix.random(random, inputs, vocab), random_rows(random, 6 * copies, inputs)
    mask = np.where(np.arange(vocab) % 7, 0.0, -np.inf).astype(np.float32)
    # One shorter than a vector, one longer than a chunk; no row has the third.
    lists = [sorted(random.choice(vocab, size, replace=False).tolist()) for size in (9, 1500, 4)]
    list_of_row = copies * [0, -1, 1, 1, -1, 0]
    found, logits = _listed(matrix, hidden, mask, lists, list_of_row), _logits(matrix, hidden)
    for row, index in enumerate(list_of_row):
        allowed = np.arange(vocab) if index < 0 else np.array(lists[index])
        restricted = np.full(vocab, -np.inf, np.float32)
        restricted[allowed] = logits[row, allowed]
        best = _best_first((restricted + mask)[None])[0, :5]
        assert found["tokens"][row].tolist() == best.tolist()
        assert np.array_equal(found["logits"][row], logits[row, best])
        np.testing.assert_allclose(found["log_normalizer"][row], _log_sum(logits[row : row + 1, allowed])[0], rtol=1e-6)
    # To the bit, alone or with other rows.
    for row, index in enumerate(list_of_row):
        alone = _listed(matrix, hidden[row : row + 1], mask, lists, [index])
        assert all(np.array_equal(alone[name][0], found[name][row]) for name in found)


def test_the_function_of_lists_in_the_graph_finds_the_same() -> None:
    random = np.random.default_rng(12)
    matrix, hidden = _matrix(400), random_rows(random, 5, INPUTS)
    mask = np.zeros(400, np.float32)
    lists = [sorted(random.choice(400, size, replace=False).tolist()) for size in (50, 90)]
    for list_of_row in ([1, 0, -1, 1, 0], [-1] * 5):
        native, function = (
            _listed(matrix, hidden, mask, lists, list_of_row, native=is_native) for is_native in (True, False)
        )
        for name in ("logits", "log_normalizer"):
            np.testing.assert_allclose(native[name], function[name], rtol=0.02, atol=0.02)
        assert (native["tokens"] == function["tokens"]).mean() > 0.7
        for row, index in enumerate(list_of_row):
            assert index < 0 or set(function["tokens"][row].tolist()) <= set(lists[index])


@pytest.mark.parametrize("list_of_row", [[1], [-2]])
def test_a_list_that_does_not_exist_is_rejected(list_of_row: list[int]) -> None:
    matrix, hidden = _matrix(64), random_rows(np.random.default_rng(13), 1, INPUTS)
    with pytest.raises(Exception, match="a row has a list that does not exist"):
        _listed(matrix, hidden, np.zeros(64, np.float32), [[1, 2, 3, 4, 5]], list_of_row)


@pytest.mark.parametrize("tokens", [[-1, 2, 3, 4, 5], [1, 2, 3, 4, 64]])
def test_a_list_with_a_token_that_does_not_exist_is_rejected(tokens: list[int]) -> None:
    matrix, hidden = _matrix(64), random_rows(np.random.default_rng(14), 1, INPUTS)
    with pytest.raises(Exception, match="a list has a column that does not exist"):
        _listed(matrix, hidden, np.zeros(64, np.float32), [tokens], [0])
