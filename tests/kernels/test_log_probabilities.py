import numpy as np
import pytest

from kernels import log_probabilities
from kernels.log_probabilities import LogProbabilities


def test_native_log_probabilities_are_those_of_numpy_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    logits, normalizers = np.zeros((5, 3), np.float32), np.zeros(5, np.float32)
    differences = LogProbabilities(logits, normalizers)
    assert np.isnan(differences.values).all()
    logits[:], normalizers[:] = random.normal(size=(5, 3)), random.normal(size=5)
    logits[2, 1], normalizers[4] = -np.inf, np.nan
    differences.update()
    native = differences.values.tobytes()
    monkeypatch.setattr(log_probabilities, "_library", None)
    differences.update()
    assert differences.values.tobytes() == native == (logits - normalizers[:, None]).tobytes()
