import numpy as np
import pytest

from server.engine.decoding.top_k import top_k


@pytest.mark.parametrize("vocab", [1, 7, 255, 256, 257, 1000])
@pytest.mark.parametrize("num_best", [1, 3, 16])
def test_the_best_tokens_are_those_of_a_sort_and_of_equals_the_smaller(vocab: int, num_best: int) -> None:
    random = np.random.default_rng(vocab)
    for scores in (
        random.normal(size=(5, vocab)).astype(np.float32),
        (random.integers(0, 4, (5, vocab)) / 2).astype(np.float32),
        np.where(random.random((5, vocab)) < 0.9, -np.inf, 1.0).astype(np.float32),
    ):
        tokens, best = top_k(scores, num_best)
        expected = np.argsort(-scores, axis=1, kind="stable")[:, :num_best]
        np.testing.assert_array_equal(best, np.take_along_axis(scores, expected, axis=1))
        is_possible = best > -np.inf
        assert (tokens < vocab).all()
        np.testing.assert_array_equal(tokens[is_possible], expected[is_possible])
