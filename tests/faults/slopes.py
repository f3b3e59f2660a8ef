"""Slope of a measured series with a confidence interval that respects its autocorrelation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_BLOCKS = 20
_DRAWS = 2000
_LEVEL = 95


@dataclass(frozen=True, slots=True)
class Slope:
    """Change in a minute, and its confidence interval of 95 %."""

    per_minute: float
    lower: float
    upper: float

    @property
    def is_distinguishable_from_zero(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.lower <= 0 <= self.upper


def slope_of(seconds: Sequence[float], values: Sequence[float], seed: int = 1) -> Slope:
    """Return the slope of a line through the measurements.

    The interval is that of a bootstrap of the residuals, in blocks of a twentieth of the series: measurements that
    follow each other are alike, and an interval that took them as independent would be too narrow.
    """
    times, measured = np.asarray(seconds) / 60.0, np.asarray(values, dtype=float)
    slope, start = np.polyfit(times, measured, 1)
    fitted = start + slope * times
    residuals = measured - fitted
    length = max(len(times) // _BLOCKS, 1)
    chance = np.random.default_rng(seed)
    num_blocks = -(-len(times) // length)
    drawn = []
    for _ in range(_DRAWS):
        begins = chance.integers(0, len(times) - length + 1, num_blocks)
        noise = np.concatenate([residuals[begin : begin + length] for begin in begins])[: len(times)]
        drawn.append(np.polyfit(times, fitted + noise, 1)[0])
    lower, upper = np.percentile(drawn, [(100 - _LEVEL) / 2, (100 + _LEVEL) / 2])
    return Slope(float(slope), float(lower), float(upper))
