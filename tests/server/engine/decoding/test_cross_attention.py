import numpy as np
import pytest

from server.engine.decoding.token_recorder import CoveragePenalty, CrossAttention, attention_weights, coverage
from tests.fakes.sentence_params import sentence_params

HEADS, SOURCE_LEN, HEAD_DIM = 3, 4, 2
KEYS = np.random.default_rng(1).normal(size=(HEADS, SOURCE_LEN, HEAD_DIM)).astype(np.float32)
QUERIES = np.random.default_rng(2).normal(size=(2, HEADS * HEAD_DIM)).astype(np.float32)


def test_weights_are_the_softmax_of_scaled_products() -> None:
    found = attention_weights(QUERIES, KEYS, 0.5)
    for token, head in np.ndindex(len(QUERIES), HEADS):
        query = QUERIES[token, head * HEAD_DIM : (head + 1) * HEAD_DIM]
        expected = np.exp([0.5 * float(query @ key) for key in KEYS[head]])
        np.testing.assert_allclose(found[token, head], expected / expected.sum(), rtol=1e-5)
    # Large products overflow nothing.
    np.testing.assert_allclose(attention_weights(QUERIES, KEYS * 1e4, 1.0).sum(axis=-1), 1, rtol=1e-5)


@pytest.mark.parametrize(("heads", "averaged"), [((), (0, 1, 2)), ((1,), (1,)), ((0, 2), (0, 2))])
def test_the_mean_is_that_of_the_selected_heads(heads: tuple[int, ...], averaged: tuple[int, ...]) -> None:
    params = sentence_params(return_attention=True, alignment_layer=2, alignment_heads=heads)
    attention = CrossAttention(params, 0.5)
    assert attention.layer == 2
    assert attention.source_len == 0
    attention.set_keys(KEYS)
    assert attention.source_len == SOURCE_LEN
    expected = attention_weights(QUERIES, KEYS, 0.5)[:, list(averaged)].mean(axis=1)
    np.testing.assert_allclose(attention.weights(QUERIES), expected, rtol=1e-6)


def test_coverage_counts_source_tokens_below_their_share() -> None:
    attention = np.array([[0.2, 0.8, 0.0], [0.3, 0.7, 0.0]], np.float32)
    assert coverage(attention) == pytest.approx(np.log(0.5))  # of the first; the second has enough, the third none
    assert coverage(np.ones((1, 2), np.float32)) == 0
    assert CoveragePenalty.is_requested(sentence_params(coverage_penalty=0.1))
    assert not CoveragePenalty.is_requested(sentence_params())
