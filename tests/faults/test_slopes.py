"""Coverage of the interval: series without a slope, of the kinds that a server's measurements are."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.faults.slopes import slope_of

SECONDS = 1800  # half of a soak of one hour, a measurement a second
SERIES = 200
Noise = Callable[[np.random.Generator], NDArray[np.float64]]


def _autoregressive(share: float) -> Noise:
    def draw(chance: np.random.Generator) -> NDArray[np.float64]:
        steps = chance.normal(size=SECONDS)
        values = np.empty(SECONDS)
        value = chance.normal() / np.sqrt(1 - share**2)  # its variance after many steps
        for index, step in enumerate(steps.tolist()):
            values[index] = value = share * value + step
        return values

    return draw


def _jumps(per_second: float) -> Noise:
    """A level with rare steps up and down, as of an allocator, and some noise."""

    def draw(chance: np.random.Generator) -> NDArray[np.float64]:
        steps = np.where(chance.random(SECONDS) < per_second, chance.laplace(size=SECONDS), 0.0)
        return np.cumsum(steps) + 0.02 * chance.normal(size=SECONDS)

    return draw


def _levels(chance: np.random.Generator) -> NDArray[np.float64]:
    """A level that is drawn again every five minutes on average."""
    period = (chance.random(SECONDS) < 1 / 300).cumsum()
    level: NDArray[np.float64] = chance.normal(size=period[-1] + 1)[period]
    return level + 0.05 * chance.normal(size=SECONDS)


_NOISE: dict[str, Noise] = {
    "independent": lambda chance: chance.normal(size=SECONDS),
    "autoregressive, 0.9": _autoregressive(0.9),
    "autoregressive, 0.99": _autoregressive(0.99),
    "autoregressive, 0.999": _autoregressive(0.999),
    "random walk": lambda chance: chance.normal(size=SECONDS).cumsum(),
    "a jump a minute": _jumps(1 / 60),
    "a jump in five minutes": _jumps(1 / 300),
    "levels": _levels,
}


@pytest.mark.parametrize("noise", _NOISE.values(), ids=_NOISE)
def test_the_interval_holds_the_slope_in_95_of_100_series(noise: Noise) -> None:
    chance = np.random.default_rng(24)
    times = np.arange(float(SECONDS))
    slopes = [slope_of(times.tolist(), (noise(chance) + 0.3 * times / 60).tolist()) for _ in range(SERIES)]
    num_held = sum(slope.lower <= 0.3 <= slope.upper for slope in slopes)
    assert num_held >= 0.92 * SERIES  # 95 % less two deviations of 200 draws


def test_a_leak_is_found_among_steps_of_an_allocator() -> None:
    # Steps of a fifth of a megabyte once in five minutes, and 0.1 MB a minute.
    chance = np.random.default_rng(24)
    times = np.arange(float(SECONDS))
    found = [
        slope_of(times.tolist(), (200 + 0.2 * _jumps(1 / 300)(chance) + 0.1 * times / 60).tolist()) for _ in range(100)
    ]
    assert sum(slope.lower > 0 for slope in found) >= 80


def test_growth_that_ends_before_the_series_does_is_told_from_growth_that_goes_on() -> None:
    # 1 - exp(-t / T) in the second half of an hour: a cache that fills in five minutes is full, in thirty it is not.
    times = np.arange(float(SECONDS), 2.0 * SECONDS)
    noise = 0.02 * np.random.default_rng(24).normal(size=SECONDS)
    filled, filling = (
        slope_of(times.tolist(), (10 * (1 - np.exp(-times / (60 * minutes))) + noise).tolist()) for minutes in (5, 30)
    )
    assert not filled.is_distinguishable_from_zero
    assert filling.lower > 0
