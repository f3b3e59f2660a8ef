import numpy as np
import pytest

from kernels import step_candidates
from kernels.step_candidates import StepCandidates


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
    monkeypatch.setattr(step_candidates, "_library", None)
    assert candidates.update() == 0
    assert candidates.log_probs.tobytes() == native == (logits - normalizers[:, None]).tobytes()
    assert all_lengths.tolist() == [2, 3, 4, 5, 6, 5], "the last row is not of this step"


@pytest.mark.parametrize("is_native", [True, False])
def test_rows_without_a_finite_best_logit_are_counted(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_native:
        monkeypatch.setattr(step_candidates, "_library", None)
    logits, normalizers, lengths = np.ones((5, 2), np.float32), np.ones(5, np.float32), np.zeros(5, np.int32)
    candidates = StepCandidates(logits, normalizers, lengths, with_scores=False)
    assert candidates.update() == 0
    logits[:, 1] = -np.inf  # a candidate behind the best one that the model suppresses
    logits[0, 0], logits[2, 0], logits[3, 0] = np.nan, -np.inf, np.inf
    assert candidates.update() == 3
    assert np.isnan(candidates.log_probs).all()
