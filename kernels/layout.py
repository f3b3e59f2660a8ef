"""Memory layouts of the native operators: int8 matrices, as in source/kernels.h, and int8 keys and values.

Graphs declare caches [rows, heads, positions, head_dim], and the functions in them read that order. The memory of a
cache for the native operators has the declared shape too, but contains [rows, positions, heads, head_dim]: position by
position, with all heads of one side by side.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

PANEL_COLUMNS = 64
"""Columns that are stored together."""

QUAD = 4
"""Adjacent numbers of a column: as many as one instruction multiplies."""

MAX_HEAD_DIM = 256
"""Largest width of an attention head."""


def to_native(cache: NDArray[Any]) -> NDArray[Any]:
    """Return keys or values [rows, heads, positions, head_dim] as memory for the native operators."""
    return np.ascontiguousarray(cache.swapaxes(1, 2)).reshape(cache.shape)


def from_native(memory: NDArray[Any]) -> NDArray[Any]:
    """Return keys or values [rows, heads, positions, head_dim] from memory of the native operators."""
    rows, heads, positions, head_dim = memory.shape
    return np.ascontiguousarray(memory.reshape(rows, positions, heads, head_dim).swapaxes(1, 2))
