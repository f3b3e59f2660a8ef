"""Matrices as int8 numbers and one step for each column.

Weights that were int8 before, as those of CTranslate2 and of Firefox, are multiples of one step in every column. Such a
column keeps its numbers if they fit; every other column gets steps of its own.
"""

import numpy as np
from numpy.typing import NDArray

from model.checkpoints.checkpoint import Checkpoint

_LARGEST = 127  # symmetric: -127 ... 127
_LARGEST_PAIR = 128
# The smallest number of a column is at most this multiple of its step.
_MAX_MULTIPLE = 3
# Largest distance of a weight from a multiple of the step, in steps: float32 has seven digits.
_TOLERANCE = 1e-3
_FEW_INPUTS = 32
_BLOCK_WEIGHTS = 2**22


def quantize_in_pairs(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return a matrix [inputs, outputs] as int8, and one scale for each output: `quantized * scales` restores it.

    Adjacent weights of one sign, the first at an even input, are at most 128 together. So the sum of their products is
    at most 255 * 128, which fits into 16 bits. For normally distributed weights this increases the step by about a
    fifth.
    """
    quantized = np.empty(weight.shape, np.int8)
    scales = np.empty(weight.shape[1], np.float32)
    # Temporary copies of some columns, not of a vocabulary.
    width = max(_BLOCK_WEIGHTS // max(weight.shape[0], 1), 1)
    for start in range(0, weight.shape[1], width):
        some = slice(start, start + width)
        quantized[:, some], scales[some] = _quantize_columns(np.ascontiguousarray(weight[:, some]))
    return quantized, scales


def _quantize_columns(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    heaviest = _heaviest_pairs(weight)
    # Rounding adds at most half a step to each of the two, and 127 + 1 is 128.
    scales = np.where(heaviest > 0, heaviest, 1.0).astype(np.float32) / np.float32(_LARGEST)
    kept = _own_steps(weight)
    fits = (kept > 0) & (kept * (1 + _TOLERANCE / _LARGEST) >= heaviest / _LARGEST_PAIR)
    scales = np.where(fits, kept, scales).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


def _heaviest_pairs(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    pairs = np.pad(weight, ((0, weight.shape[0] % 2), (0, 0))).reshape(-1, 2, weight.shape[1])
    largest: NDArray[np.float32] = np.abs([pairs.clip(min=0).sum(axis=1), pairs.clip(max=0).sum(axis=1)]).max((0, 1))
    return largest


def _own_steps(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the step of which all weights of a column are multiples, at most 127 times it; 0 without such a step."""
    magnitudes = np.abs(weight)
    largest = magnitudes.max(axis=0)
    smallest = np.where(magnitudes > 0, magnitudes, np.inf).min(axis=0)
    steps = np.zeros(weight.shape[1], np.float32)
    for multiple in range(1, _MAX_MULTIPLE + 1):
        with np.errstate(invalid="ignore", divide="ignore"):
            found = smallest / multiple
            # From the largest weight, whose relative error is the same and whose multiple is larger.
            found = largest / np.rint(largest / found)
        usable = (steps == 0) & (largest > 0) & (largest <= _LARGEST * found * (1 + _TOLERANCE / _LARGEST))
        # Columns of other models fail at the first few weights.
        for rows in (slice(_FEW_INPUTS), slice(None)):
            columns = usable.nonzero()[0]
            in_steps = weight[rows, columns] / found[columns]
            usable[columns] = (np.abs(in_steps - np.rint(in_steps)) <= _TOLERANCE).all(axis=0)
        steps[usable] = found[usable]
    return _exact_steps(weight, steps)


def _exact_steps(weight: NDArray[np.float32], steps: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return each step, or its neighbour in float32 if the weights are exact multiples of that one."""
    exact = steps.copy()
    for candidate in (np.nextafter(steps, np.float32(0)), np.nextafter(steps, np.float32(np.inf)), steps):
        columns = (steps > 0).nonzero()[0]
        sizes = candidate[columns]
        is_exact = (np.rint(weight[:, columns] / sizes) * sizes == weight[:, columns]).all(axis=0)
        exact[columns[is_exact]] = sizes[is_exact]
    return exact


def rounding_of_weights(checkpoint: Checkpoint) -> float:
    """Return the change of embeddings and weights of products in an int8 bundle: its RMS divided by theirs.

    The steps of both differ, because sums of the native operators must fit into 16 bits.
    """
    changes = squares = 0.0
    for name, tensor in checkpoint.weights.items():
        if name.endswith(("_proj.weight", ".embedding.weight")):
            weight: NDArray[np.float32] = tensor.float().numpy().T
            quantized, scales = quantize_in_pairs(weight)
            changes += float(np.square(quantized * scales - weight).sum())
            squares += float(np.square(weight).sum())
    return float(np.sqrt(changes / squares)) if squares else 0.0
