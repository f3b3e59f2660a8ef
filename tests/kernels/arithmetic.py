"""The operators in float64 NumPy, and random inputs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernels.layout import PANEL_COLUMNS
from tests.kernels.operator_sessions import Arrays

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Int8 = NDArray[np.int8]

STEP = float(np.float32(1 / 127))


@dataclass(frozen=True, slots=True)
class Matrix:
    """int8 `numbers` [inputs, outputs], what its columns are multiplied by, and a bias [outputs]."""

    numbers: Int8
    scales: Floats
    bias: Floats

    @classmethod
    def random(cls, random: np.random.Generator, inputs: int, outputs: int) -> "Matrix":
        """Every int8 number but -128, which quantising never gives; a pair of one sign is 128 together at most."""
        numbers = random.integers(-127, 128, (inputs, outputs))
        first, second = numbers[0::2], numbers[1::2]
        is_too_much = np.abs(first + second) > 128
        second[is_too_much & (first * second > 0)] *= -1
        return cls(
            numbers.astype(np.int8),
            random.uniform(1e-4, 1e-3, outputs).astype(np.float32),
            random.standard_normal(outputs).astype(np.float32),
        )

    def inputs(self, hidden: Floats) -> Arrays:
        """The first inputs of a linear operator, the matrix laid out column by column."""
        inputs, outputs = self.numbers.shape
        panels = np.zeros((-(-outputs // PANEL_COLUMNS), inputs // 4, PANEL_COLUMNS, 4), np.int8)
        for column in range(outputs):
            panel, place = divmod(column, PANEL_COLUMNS)
            panels[panel, :, place] = self.numbers[:, column].reshape(-1, 4)
        sums = self.numbers.astype(np.int32).sum(axis=0, dtype=np.int32)
        return {"hidden": hidden, "weight": panels, "scales": self.scales, "sums": sums, "bias": self.bias}

    def product(self, hidden: Floats, *, is_positive: bool = False) -> Doubles:
        """`hidden` [rows, inputs], in steps of its rows' largest magnitudes, times the matrix, plus the bias."""
        levels = np.float32(255 if is_positive else 127)
        largest = np.abs(hidden).max(axis=1, keepdims=True)
        inverse = np.divide(levels, largest, out=np.zeros_like(largest), where=largest > 0)
        quantized = np.rint(hidden.astype(np.float64) * inverse)
        row_scales = (largest / levels).astype(np.float64)
        product: Doubles = quantized @ self.numbers.astype(np.float64) * row_scales * self.scales + self.bias
        return product


def random_rows(random: np.random.Generator, rows: int, width: int) -> Floats:
    """Rows whose scales differ by six orders of magnitude."""
    return (random.standard_normal((rows, width)) * 10.0 ** random.uniform(-3, 3, (rows, 1))).astype(np.float32)


def normalized(hidden: Doubles, weight: Floats, bias: Floats, epsilon: float) -> Doubles:
    """Layer normalisation of each row."""
    centred = hidden - hidden.mean(axis=1, keepdims=True)
    result: Doubles = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + epsilon) * weight + bias
    return result


def in_steps(keys_or_values: Floats) -> Int8:
    """Return the numbers after storage in an int8 cache."""
    inverse = np.float32(1) / np.float32(STEP)
    inside = np.clip(keys_or_values, np.float32(-128) * np.float32(STEP), np.float32(127) * np.float32(STEP))
    return np.rint(inside.astype(np.float64) * inverse).astype(np.int8)


def attended(queries: Doubles, keys: Doubles, values: Doubles, scale: float) -> Doubles:
    """Attention of queries [.., queries, head_dim] over keys and values [.., positions, head_dim]."""
    scores = queries @ np.swapaxes(keys, -1, -2) * scale
    probabilities = np.exp(scores - scores.max(axis=-1, keepdims=True))
    result: Doubles = probabilities @ values / probabilities.sum(axis=-1, keepdims=True)
    return result


def attended_in_levels(
    queries: Floats, keys: Int8, values: Int8, scale: float, biases: Doubles | None = None
) -> Doubles:
    """Attention of queries [heads, head_dim] over int8 keys and values [heads, positions, head_dim].

    Queries are rounded to 16 bits with one scale for each head, probabilities to 14 bits of their largest.
    """
    largest = np.abs(queries).max(axis=1, keepdims=True)
    inverse = np.divide(np.float32(32767), largest, out=np.zeros_like(largest), where=largest > 0)
    levels = np.rint(queries.astype(np.float64) * inverse)
    scores = (levels[:, None] @ np.swapaxes(keys, -1, -2).astype(np.float64))[:, 0]
    scores *= largest.astype(np.float64) / 32767 * scale * STEP
    if biases is not None:
        scores += biases
    shares = np.rint(np.exp(scores - scores.max(axis=1, keepdims=True)) * 16383)
    sums = (shares[:, None] @ values.astype(np.float64))[:, 0]
    result: Doubles = sums * STEP / shares.sum(axis=1, keepdims=True)
    return result


def assert_attends(found: Floats, expected: Doubles) -> None:
    """A probability between two levels can be rounded up or down: that changes few heads, and these by a level."""
    difference = np.abs(found - expected)
    assert difference.max() < 2 / 16383
    assert (difference > 2e-6).mean() < 0.1
