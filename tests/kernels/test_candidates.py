"""Best tokens, candidates of a step: native and in NumPy."""

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels import candidates as module
from kernels.candidates import StepCandidates, top_k


def _scores(vocab: int) -> list[NDArray[np.float32]]:
    random = np.random.default_rng(vocab)
    scores = [  # among them equal ones, and zeros of both signs
        random.normal(size=(5, vocab)),
        random.integers(-2, 3, (5, vocab)) / 2 * random.choice([-1.0, 1.0], (5, vocab)),
        np.where(random.random((5, vocab)) < 0.9, -np.inf, 1.0),
        np.where(random.random((5, vocab)) < 0.4, np.nan, random.integers(0, 4, (5, vocab))),
        np.sort(random.normal(size=(5, vocab))),
        np.full((5, vocab), np.nan),
    ]
    return [each.astype(np.float32) for each in scores]


@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize("vocab", [1, 7, 255, 256, 257, 1000])
@pytest.mark.parametrize("num_best", [1, 3, 16, 70])
def test_the_best_tokens_are_those_of_a_sort_and_of_equals_the_smaller(
    vocab: int, num_best: int, is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_native:
        monkeypatch.setattr(module, "_library", None)
    for scores in _scores(vocab):
        tokens, best = top_k(scores, num_best)
        possible = np.where(np.isnan(scores), np.float32(-np.inf), scores)
        expected = np.argsort(-possible, axis=1, kind="stable")[:, :num_best]
        np.testing.assert_array_equal(tokens, expected)
        assert best.tobytes() == np.take_along_axis(possible, expected, axis=1).tobytes()


def test_native_candidates_are_those_of_numpy_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    logits, normalizers = np.zeros((5, 3), np.float32), np.zeros(5, np.float32)
    all_lengths = np.arange(6, dtype=np.int32)
    lengths = all_lengths[:5]
    candidates = StepCandidates(logits, normalizers, lengths, with_scores=True)
    assert np.isnan(candidates.log_probs).all()
    logits[:], normalizers[:] = random.normal(size=(5, 3)), random.normal(size=5)
    logits[2, 1], normalizers[4] = -np.inf, np.nan
    assert candidates.update() == 0
    native = candidates.log_probs.tobytes()
    monkeypatch.setattr(module, "_library", None)
    assert candidates.update() == 0
    assert candidates.log_probs.tobytes() == native == (logits - normalizers[:, None]).tobytes()
    assert all_lengths.tolist() == [2, 3, 4, 5, 6, 5], "the last row is not of this step"


@pytest.mark.parametrize("is_native", [True, False])
def test_rows_without_a_finite_best_logit_are_counted(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_native:
        monkeypatch.setattr(module, "_library", None)
    logits, normalizers, lengths = np.ones((5, 2), np.float32), np.ones(5, np.float32), np.zeros(5, np.int32)
    candidates = StepCandidates(logits, normalizers, lengths, with_scores=False)
    assert candidates.update() == 0
    logits[:, 1] = -np.inf  # a candidate behind the best one that the model suppresses
    logits[0, 0], logits[2, 0], logits[3, 0] = np.nan, -np.inf, np.inf
    assert candidates.update() == 3
    assert np.isnan(candidates.log_probs).all()
