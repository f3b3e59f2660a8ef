"""The order of int8 keys and values in memory that the native operators read: position by position, all heads of one
beside each other.

Graphs declare caches [rows, heads, positions, head_dim], and the functions in them read that order. The memory of a
cache for the native operators has the declared shape too, but contains [rows, positions, heads, head_dim].
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def to_native(cache: NDArray[Any]) -> NDArray[Any]:
    """Return keys or values [rows, heads, positions, head_dim] as memory for the native operators."""
    return np.ascontiguousarray(cache.swapaxes(1, 2)).reshape(cache.shape)


def from_native(memory: NDArray[Any]) -> NDArray[Any]:
    """Return keys or values [rows, heads, positions, head_dim] from memory of the native operators."""
    rows, heads, positions, head_dim = memory.shape
    return np.ascontiguousarray(memory.reshape(rows, positions, heads, head_dim).swapaxes(1, 2))
