"""The embedding of an int8 bundle, of which the graphs have two roundings: the table and the output projection.

Each rounding allows an interval of half a step to both sides. A weight inside both intervals is closer to the original
than either rounding, and rounds to both again, so that the next export writes equal graphs. Two numbers of a row are
more than an interval: its largest weight is 127 steps of the table, and its heaviest pair of adjacent weights of one
sign is 127 steps of the projection (see export/int8/quantize.py, which derives the steps from these).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.recovery.graph_weights import Matrix

Steps = NDArray[np.int8]
_Floats = NDArray[np.float64]
_LEVELS = 127
# In steps: distance from the ends of an interval, so that float32 rounds no weight across an end. The first leaves four
# of 8,000 tokens of a trained model without a solution, the last none.
_MARGINS = (1e-3, 1e-4, 2e-5)
_BELOW = 1e-7


@dataclass(frozen=True, slots=True)
class _Intervals:
    """Magnitudes [rows, pairs, 2] of weights in the direction of their `signs`, and the interval of each."""

    low: _Floats
    high: _Floats
    signs: _Floats


def within_both_roundings(
    table: Steps, table_steps: Matrix, projection: Steps, projection_steps: Matrix, scale: float
) -> Matrix:
    """Return weights [tokens, d_model] that round to `table` if multiplied by `scale`, and to `projection`.

    Both are [tokens, d_model], with the size of a step for each token. Tokens for which no weights round to both keep
    those of the table.
    """
    weights = table * (table_steps / np.float32(scale))[:, None]
    if table.shape[1] % 2:
        return weights
    missing = np.arange(len(table))
    for margin in _MARGINS:
        if not len(missing):
            break
        candidates = _candidates(
            table[missing], table_steps[missing] / scale, projection[missing], projection_steps[missing], margin
        )
        scaled = candidates * np.float32(scale)
        found = _is_rounding(scaled, table[missing], np.abs(scaled).max(axis=1))
        found &= _is_rounding(candidates, projection[missing], _heaviest(candidates))
        weights[missing[found]] = candidates[found]
        missing = missing[~found]
    return weights


def _candidates(
    table: Steps, table_steps: Matrix, projection: Steps, projection_steps: Matrix, margin: float
) -> Matrix:
    rows, width = table.shape
    first_step, second_step = table_steps.astype(np.float64), projection_steps.astype(np.float64)
    first, second = (each.reshape(rows, -1, 2).astype(np.float64) for each in (table, projection))
    intervals = _intersection(first, first_step[:, None, None], second, second_step[:, None, None], margin)
    largest, heaviest = _divisible(table_steps), _divisible(projection_steps)
    sizes = np.clip(np.abs(first) * first_step[:, None, None], intervals.low, intervals.high)
    fixed = _fix_largest(sizes, intervals, np.abs(first) == _LEVELS, largest)
    is_pair = intervals.signs[..., 0] == intervals.signs[..., 1]
    _lower_pairs(sizes, intervals, fixed, is_pair, heaviest)
    _raise_heaviest(sizes, intervals, is_pair, heaviest)
    return (sizes * intervals.signs).reshape(rows, width).astype(np.float32)


def _divisible(steps: Matrix) -> _Floats:
    """Return numbers of float32 that are exactly `steps` if float32 divides them by 127, wherever there are such."""
    product = steps * np.float32(_LEVELS)
    for candidate in (np.nextafter(product, np.float32(0)), np.nextafter(product, np.float32(np.inf))):
        product = np.where(candidate / np.float32(_LEVELS) == steps, candidate, product)
    return product.astype(np.float64)


def _intersection(
    first: _Floats, first_step: _Floats, second: _Floats, second_step: _Floats, margin: float
) -> _Intervals:
    signs = np.sign(np.where(first != 0, first, second))
    # A weight that both round to zero can have either sign: that of the other of its pair, to which it may add.
    signs = np.where(signs == 0, signs[..., ::-1], signs)
    signs = np.where(signs == 0, 1.0, signs)
    half = 0.5 - margin
    low = np.maximum((first * signs - half) * first_step, (second * signs - half) * second_step)
    high = np.minimum((first * signs + half) * first_step, (second * signs + half) * second_step)
    high = np.minimum(high, np.minimum(_LEVELS * first_step, _LEVELS * second_step))
    return _Intervals(np.maximum(low, 0.0), high, signs)


def _fix_largest(
    sizes: _Floats, intervals: _Intervals, is_candidate: NDArray[np.bool_], largest: _Floats
) -> NDArray[np.bool_]:
    """Set one weight of each row to the largest, and return which ones."""
    rows = np.arange(len(sizes))
    is_candidate = is_candidate & (intervals.high >= largest[:, None, None] * (1 - 1e-6))
    # Of several, the one that leaves its pair the most room.
    room = np.where(is_candidate, -intervals.low[..., ::-1], -np.inf).reshape(len(sizes), -1)
    chosen = room.argmax(axis=1)
    sizes.reshape(len(sizes), -1)[rows, chosen] = largest
    fixed = np.zeros(room.shape, bool)
    fixed[rows, chosen] = True
    return fixed.reshape(sizes.shape)


def _lower_pairs(
    sizes: _Floats, intervals: _Intervals, fixed: NDArray[np.bool_], is_pair: NDArray[np.bool_], heaviest: _Floats
) -> None:
    """Reduce pairs that are heavier than the heaviest of their row."""
    # A little below it, so that float32 makes none of them the heaviest.
    excess = np.where(is_pair, sizes.sum(axis=2) - (1 - _BELOW) * heaviest[:, None], 0.0).clip(min=0.0)
    room = np.where(fixed, 0.0, sizes - intervals.low).clip(min=0.0)
    total = room.sum(axis=2)
    sizes -= room * np.divide(excess, total, out=np.zeros_like(total), where=total > 0)[..., None]


def _raise_heaviest(sizes: _Floats, intervals: _Intervals, is_pair: NDArray[np.bool_], heaviest: _Floats) -> None:
    """Raise one pair of each row to the weight of the heaviest."""
    rows = np.arange(len(sizes))
    reachable = np.where(is_pair, intervals.high.sum(axis=2), intervals.high.max(axis=2))
    chosen = reachable.argmax(axis=1)
    pairs, high = sizes[rows, chosen], intervals.high[rows, chosen]
    missing = heaviest - np.where(is_pair[rows, chosen], pairs.sum(axis=1), pairs.max(axis=1))
    room = (high - pairs).clip(min=0.0)
    single = ~is_pair[rows, chosen]
    room[single & (pairs[:, 0] >= pairs[:, 1]), 1] = 0.0
    room[single & (pairs[:, 0] < pairs[:, 1]), 0] = 0.0
    total = room.sum(axis=1)
    share = np.divide(missing.clip(min=0.0), total, out=np.zeros_like(total), where=total > 0)
    raised = (pairs + room * share[:, None]).astype(np.float32).astype(np.float64)
    # The sum must be that very number of float32: the larger of both takes what the smaller leaves, which is exact.
    first = np.where(raised[:, 0] >= raised[:, 1], 0, 1)
    index = np.arange(len(raised))
    rest = np.where(single, 0.0, raised[index, 1 - first])
    raised[index, first] = np.where(missing >= 0, heaviest - rest, raised[index, first])
    sizes[rows, chosen] = raised


def _heaviest(weights: Matrix) -> Matrix:
    pairs = weights.reshape(len(weights), -1, 2)
    sums = np.maximum(pairs.clip(min=0).sum(axis=2), -pairs.clip(max=0).sum(axis=2))
    heaviest: Matrix = sums.max(axis=1)
    return heaviest


def _is_rounding(weights: Matrix, steps: Steps, largest: Matrix) -> NDArray[np.bool_]:
    sizes = np.where(largest > 0, largest, np.float32(1.0)) / np.float32(_LEVELS)
    return np.asarray((np.rint(weights / sizes[:, None]) == steps).all(axis=1))
