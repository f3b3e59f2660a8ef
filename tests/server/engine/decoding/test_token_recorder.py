"""Records of decoder steps, weights of cross-attention, and coverage."""

import numpy as np
import pytest

from server.engine.decoding.token_recorder import (
    CrossAttention,
    TokenRecorder,
    attention_weights,
)
from server.engine.model_runner import RequestRows
from server.interface.request import FinishReason, Hypothesis, SentenceParams
from tests.fakes.sentence_params import sentence_params

END = 0
LOGITS = np.array([[0.0, 1.0, 3.0, 2.0]], np.float32)
NORMALIZER = np.array([4.0], np.float32)


def _rows(queries: np.ndarray | None = None) -> RequestRows:
    none = np.zeros((1, 0))
    return RequestRows(none.astype(np.int64), none.astype(np.float32), NORMALIZER, LOGITS, np.arange(1), queries)


def _recorded(params: SentenceParams, *tokens: int) -> TokenRecorder:
    """Return a recorder of the steps that wrote these tokens, each with a log-probability of minus its number."""
    recorder = TokenRecorder(params, None, END)
    for length, token in enumerate(tokens):
        prefix = np.array([tokens[:length]], np.int32).reshape(1, length)
        candidates, log_probs = np.array([[token, 9]]), np.array([[-float(token), -np.inf]], np.float32)
        recorder.record(prefix, candidates, log_probs, _rows())
    return recorder


@pytest.mark.parametrize(
    ("options", "is_requested", "records_candidates"),
    [
        ({}, False, False),
        ({"return_token_scores": True}, True, True),
        ({"forced_target": (1, 0)}, True, True),
        ({"num_token_alternatives": 2}, True, True),
        ({"return_attention": True}, True, False),
        ({"repetition_penalty": 1.5}, True, False),
        ({"beam_size": 4, "num_beam_groups": 2}, True, False),
    ],
)
def test_records_are_kept_for_details_and_for_scores_that_a_search_changes(
    options: dict[str, object], is_requested: bool, records_candidates: bool
) -> None:
    params = sentence_params(**options)
    assert TokenRecorder.is_requested(params) is is_requested
    assert TokenRecorder(params, None, END).records_candidates is records_candidates


def test_attention_is_that_of_each_token_of_the_answer() -> None:
    params = sentence_params(return_attention=True)
    attention = CrossAttention(params, 1.0)
    attention.set_keys(np.array([[[1.0], [0.0]]], np.float32))
    recorder = TokenRecorder(params, attention, END)
    for length, query in enumerate((5.0, -5.0, 0.0)):
        prefix = np.array([[1, 2][:length]], np.int32).reshape(1, length)
        token, log_prob = np.array([[(1, 2, END)[length]]]), np.zeros((1, 1), np.float32)
        recorder.record(prefix, token, log_prob, _rows(np.array([[query]], np.float32)))
    details = recorder.annotate(Hypothesis([1, 2], 0.0, 0.0, FinishReason.STOP)).details
    assert details is not None
    assert details.attention is not None
    assert details.attention.argmax(axis=1).tolist() == [0, 1]
    assert recorder.attention(np.zeros(0, np.int32)).shape == (0, 2)


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
