"""KV cache rows: assignment after a beam step, and copies between rows."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import load

_library = load("kvasir_copy_rows", "kvasir_children_in_rows")
if _library is not None:
    _library.kvasir_copy_rows.restype = None
    _library.kvasir_copy_rows.argtypes = [
        ctypes.c_void_p,
        *[ctypes.c_int64] * 4,
        *[ctypes.c_void_p] * 3,
        ctypes.c_int64,
    ]
    _library.kvasir_children_in_rows.restype = ctypes.c_int64
    _library.kvasir_children_in_rows.argtypes = [*[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 4]


def children_in_rows(
    rows: NDArray[np.intp], parents: NDArray[np.integer]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows of beams [requests, beam_size] that continue `parents`, and copies' sources and destinations.

    `parents` are beam indices within a request; `rows` are the rows of the parents. The first child stays in its
    parent's row; further children are copied into rows of beams without children. So no copy reads a row that another
    copy writes.
    """
    num, beam_size = rows.shape
    if _library is None:
        return _children_in_rows_in_numpy(rows, parents)
    children, parents = rows.copy(), np.ascontiguousarray(parents, np.intp)
    moves = np.empty((2, num * beam_size), np.intp)
    num_copied = _library.kvasir_children_in_rows(
        num, beam_size, children.ctypes.data, parents.ctypes.data, moves.ctypes.data, moves[1].ctypes.data
    )
    return children, moves[0, :num_copied], moves[1, :num_copied]


def _children_in_rows_in_numpy(
    rows: NDArray[np.intp], parents: NDArray[np.integer]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    children: NDArray[np.intp] = np.take_along_axis(rows, parents, axis=1)
    # [requests, beam_size]: whether an earlier child has the same parent, and whether a beam has no children.
    beams = np.arange(rows.shape[1])
    is_same = parents[:, :, None] == parents[:, None, :]
    is_repeated = (is_same & (beams < beams[:, None])).any(axis=2)
    is_childless = (parents[:, None, :] != beams[:, None]).all(axis=2)
    # Both are ordered by request, and within a request the numbers of free rows and of copied children are equal.
    sources, destinations = children[is_repeated], rows[is_childless]
    children[is_repeated] = destinations
    return children, sources, destinations


class RowCopier:
    """Copies of valid positions between rows, in every plane and block of one cache.

    `cache` is C-contiguous [planes, rows, blocks, positions, numbers] and must not move: a block for each head, or one
    of all heads.
    """

    def __init__(self, cache: NDArray[np.number]) -> None:
        assert cache.flags.c_contiguous, "rows are addressed by pointers"
        planes, rows, heads, positions, head_dim = cache.shape
        self._cache = cache
        self._position_size = head_dim * cache.itemsize
        # Arguments in fixed memory: reading the address of an array is slow.
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
