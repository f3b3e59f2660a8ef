"""Judgement of the differences between a graph and its reference.

float32 and float16 outputs have a limit. A float32 output beyond it is compared with PyTorch in float64, in which the
limit is a multiple of what the rounding of PyTorch in float32 changes: some models enlarge it. An int8 output is
compared with a model that only rounds: a correct graph rounds alike, but for numbers half-way between two levels, after
which both go separate ways. So single differences are unlucky, and a wrong graph shows in their distribution. In some
sentences one such number changes more than all other rounding. So what looks wrong is compared with several models,
which round those numbers either way: a correct graph is as near to one of them as they are to one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bundle.tensors import Precision

# Largest difference, relative to the largest value of the output. float32 differs by the order of sums, float16 has 11
# bits. In int8, a model with a larger rounding error gets a warning.
TOLERANCE: dict[Precision, float] = {"float32": 1e-4, "float16": 2e-2, "int8": 2.5e-1}
# Difference of a float output, as a multiple of that of PyTorch's own rounding: of 14 models it was at most 6.7.
_MAX_FLOAT_EXCESS = 10.0
MIN_IN_INT8 = 1e-2
# Largest difference of a correct int8 graph, as a multiple of the largest rounding error of the model: measured 1.65.
_USUAL = 2.0
# Two independent rounding errors differ by 1.41 times one of them, in root mean square. That of a few numbers varies
# with one divided by the root of their count: of the five normalisers of a model whose weights were int8 before, so
# that only activations are rounded, it reached 1.9.
_MAX_RESIDUAL = 1.6
_USUAL_RESIDUAL = 0.8
# Difference of one number from the model that only rounds, as a multiple of the largest rounding error.
_MAX_EXCESS = 3.0
_MAX_OUTLIER_SHARE = 0.05  # of numbers that differ by more than the largest rounding error
_MIN_OUTLIERS = 3
# Distance from the nearest of several models that only round, as a multiple of the largest such distance among them.
_MAX_DISTANCE = 2.0


class Verdict(Enum):
    """Judgement of one output."""

    USUAL = "usual"
    UNLUCKY = "unlucky"  # within a correct graph's rounding, but larger than in almost all
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of one output from its reference, relative to the reference's largest value, and its usual limit.

    For int8: `residual` is the root mean square of the difference from a model that only rounds, as a multiple of that
    of the rounding; `excess` the largest such difference as a multiple of the largest rounding error; `outliers` the
    share of numbers with an excess above 1.
    """

    output: str
    relative: float
    allowed: float
    verdict: Verdict
    residual: float = 0.0
    excess: float = 0.0
    outliers: float = 0.0

    def __str__(self) -> str:
        text = f"{self.output}: {self.relative:.2g} ({self.allowed:.2g})"
        if not self.residual:
            return text
        rms = f"RMS {self.residual:.2g} times that of rounding ({_USUAL_RESIDUAL})"
        return f"{text}, {rms}, {self.outliers:.1%} outliers"


def difference(
    output: str,
    found: NDArray[np.floating],
    values: NDArray[np.float32],
    precision: Precision,
    rounded: Sequence[NDArray[np.float32]] = (),
) -> Difference:
    """Return the difference between `found` and the reference `values`; `rounded` are models that only round.

    Of several, the nearest counts, and an output that is as near to it as they are to one another is not wrong.
    """
    if rounded and precision == "int8":
        nearest = min(rounded, key=lambda each: _distance(found, each))
        single = _in_int8(output, found, values, nearest)
        if len(rounded) == 1 or single.verdict is not Verdict.WRONG:
            return single
        among_them = max(min(_distance(each, other) for other in rounded if other is not each) for each in rounded)
        allowed = _MAX_DISTANCE * max(among_them, MIN_IN_INT8 / _USUAL * _largest(values) / 10)
        is_near = _distance(found, nearest) <= allowed  # NaN is beyond every limit
        return replace(single, verdict=Verdict.UNLUCKY) if is_near else single
    size = _largest(values) or 1.0
    relative, allowed = _largest(found - values) / size, TOLERANCE[precision]
    if relative <= allowed:
        return Difference(output, relative, allowed, Verdict.USUAL)
    rounding = max((_largest(each - values) / size for each in rounded), default=0.0)
    # `not <=`: NaN is beyond every limit.
    verdict = Verdict.UNLUCKY if relative <= _MAX_FLOAT_EXCESS * rounding else Verdict.WRONG
    return Difference(output, relative, allowed, verdict)


def _in_int8(
    output: str, found: NDArray[np.floating], values: NDArray[np.float32], rounded: NDArray[np.float32]
) -> Difference:
    size = _largest(values) or 1.0
    relative = _largest(found - values) / size
    rounding, gap = rounded - values, found - rounded
    largest = max(_largest(rounding), MIN_IN_INT8 / _USUAL * size)
    floor = MIN_IN_INT8 / _USUAL * size / 10
    residual = _root_mean_square(gap) / max(_root_mean_square(rounding), floor)
    excess = _largest(gap) / largest
    num_outliers = int((np.abs(gap) > largest).sum())
    outliers = num_outliers / max(1, gap.size)
    usual = _USUAL * largest / size
    max_residual = _MAX_RESIDUAL * (1 + max(1, gap.size) ** -0.5)
    is_wrong = not (residual <= max_residual and excess <= _MAX_EXCESS) or (
        outliers > _MAX_OUTLIER_SHARE and num_outliers >= _MIN_OUTLIERS
    )
    is_usual = relative <= min(usual, TOLERANCE["int8"]) and residual <= _USUAL_RESIDUAL
    verdict = Verdict.WRONG if is_wrong else Verdict.USUAL if is_usual else Verdict.UNLUCKY
    return Difference(output, relative, usual, verdict, residual, excess, outliers)


def _largest(values: NDArray[np.floating]) -> float:
    return float(np.abs(values).max(initial=0.0))


def _distance(left: NDArray[np.floating], right: NDArray[np.floating]) -> float:
    return _root_mean_square(left - right)


def _root_mean_square(values: NDArray[np.floating]) -> float:
    return float(np.sqrt(np.square(values, dtype=np.float64).mean())) if values.size else 0.0
