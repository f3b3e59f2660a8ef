"""Memory of keys and values: provided page by page, and its two orders."""

import mmap

import numpy as np
from numpy.typing import NDArray


def lazy_zeros(shape: tuple[int, ...], dtype: type[np.number]) -> NDArray[np.number]:
    """Return zeros that the system provides page by page: unused rows and positions take no memory.

    NumPy requests huge pages, which contain many positions each: a single used position would take as much as all.
    """
    num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if not num_bytes:
        return np.zeros(shape, dtype)  # a model without a decoder
    return np.frombuffer(mmap.mmap(-1, num_bytes), dtype).reshape(shape)


def lazy_cache(
    planes: int, rows: int, heads: int, head_dim: int, positions: int, dtype: type[np.number], is_by_position: bool
) -> NDArray[np.number]:
    """Return keys or values [planes, rows, heads, positions, head_dim] of zeros, in one of the two orders."""
    if is_by_position:
        return lazy_zeros((planes, rows, positions, heads, head_dim), dtype).swapaxes(2, 3)
    return lazy_zeros((planes, rows, heads, positions, head_dim), dtype)


def blocks_of(cache: NDArray[np.number], is_by_position: bool) -> NDArray[np.number]:
    """Return the memory of keys or values [planes, rows, heads, positions, head_dim] in its order.

    The positions of a row are in a block for each head, which is the same array, or in one of all heads: then [planes,
    rows, 1, positions, heads * head_dim]. The array does not show which: with one head, both orders are the same.
    """
    if not is_by_position:
        return cache
    planes, rows, heads, positions, head_dim = cache.shape
    return cache.swapaxes(2, 3).reshape(planes, rows, 1, positions, heads * head_dim)
