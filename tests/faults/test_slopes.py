import numpy as np
import pytest

from tests.faults.slopes import slope_of


def _walk(seed: int) -> np.ndarray:
    """Noise in which measurements that follow each other are alike."""
    chance = np.random.default_rng(seed)
    values = np.zeros(600)
    for index in range(1, 600):
        values[index] = 0.9 * values[index - 1] + chance.normal()
    return values


@pytest.mark.parametrize("seed", range(3))
def test_a_slope_is_found_in_noise(seed: int) -> None:
    seconds = np.arange(600.0)
    slope = slope_of(seconds.tolist(), (_walk(seed) + 200 + seconds / 60 * 2).tolist())
    assert slope.lower < 2 < slope.upper
    assert slope.is_distinguishable_from_zero


def test_noise_has_rarely_a_slope() -> None:
    seconds = np.arange(600.0).tolist()
    found = [slope_of(seconds, _walk(seed).tolist()).is_distinguishable_from_zero for seed in range(20)]
    assert sum(found) <= 4
