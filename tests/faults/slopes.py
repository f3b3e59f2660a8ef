"""Slope of a measured series, with a confidence interval that holds for levels that wander."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_PERIODS = 10
_QUANTILE = 2.306  # 97.5 % of Student's t with 8 degrees of freedom
# Variance of the last mean of a random walk minus its first, over that of as many independent differences between
# means that follow each other: these share half of their steps.
_SHARED_STEPS = 1.5


@dataclass(frozen=True, slots=True)
class Slope:
    """Change in a minute, and its confidence interval of at least 95 %."""

    per_minute: float
    lower: float
    upper: float

    @property
    def is_distinguishable_from_zero(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.lower <= 0 <= self.upper


def slope_of(seconds: Sequence[float], values: Sequence[float]) -> Slope:
    """Return the slope between the first and the last of ten periods of at least one measurement each.

    The interval comes from the differences between the means of periods that follow each other, taken for those of a
    random walk. Memory resembles one: pages are taken and given back, and a level stays until the next step. If the
    series returns to a level instead, the interval is wider than necessary. An interval of the residuals of a line is
    narrower, and does not hold 95 % for such series (test_slopes.py has some).
    """
    times = np.array([part.mean() for part in np.array_split(np.asarray(seconds) / 60.0, _PERIODS)])
    means = np.array([part.mean() for part in np.array_split(np.asarray(values, dtype=float), _PERIODS)])
    minutes = times[-1] - times[0]
    slope = (means[-1] - means[0]) / minutes
    deviation = math.sqrt(_SHARED_STEPS * (_PERIODS - 1)) * np.diff(means).std(ddof=1) / minutes
    return Slope(float(slope), float(slope - _QUANTILE * deviation), float(slope + _QUANTILE * deviation))
