"""Copies between rows of a cache of keys and values."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from kernels.binary import load

_library = load()
if _library is not None:
    _library.kvasir_copy_rows.restype = None
    _library.kvasir_copy_rows.argtypes = [
        ctypes.c_void_p,
        *[ctypes.c_int64] * 4,
        *[ctypes.c_void_p] * 3,
        ctypes.c_int64,
    ]


class RowCopier:
    """Copies valid positions of rows to other rows, in every plane and head of one cache.

    `cache` is C-contiguous [planes, rows, heads, positions, head_dim], and stays where it is.
    """

    def __init__(self, cache: NDArray[np.number]) -> None:
        assert cache.flags.c_contiguous, "rows are found by their address"
        planes, rows, heads, positions, head_dim = cache.shape
        self._cache = cache
        self._position_size = head_dim * cache.itemsize
        # Where the library finds its arguments; addresses are dear to ask for every time.
        self._arguments = np.zeros((3, rows), np.int64)
        start, stride = self._arguments.ctypes.data, self._arguments.strides[0]
        shape = (planes, rows, heads, positions * self._position_size)
        self._addresses = (cache.ctypes.data, *shape, start, start + stride, start + 2 * stride)

    def copy(self, sources: NDArray[np.intp], destinations: NDArray[np.intp], lengths: NDArray[np.integer]) -> None:
        """Copy the first `lengths[i]` positions of row `sources[i]` to row `destinations[i]`.

        No row may be both a source and a destination.
        """
        if _library is None:
            for source, destination, length in zip(
                sources.tolist(), destinations.tolist(), lengths.tolist(), strict=True
            ):
                self._cache[:, destination, :, :length] = self._cache[:, source, :, :length]
            return
        count = sources.size
        self._arguments[0, :count] = sources
        self._arguments[1, :count] = destinations
        np.multiply(lengths, self._position_size, out=self._arguments[2, :count])
        _library.kvasir_copy_rows(*self._addresses, count)
