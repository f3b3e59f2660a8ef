"""Rows of a KV cache in C: assignment after a step, moves, copies. `KVCache` in server/engine defines the results."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernels.shared_library import INT64, POINTER, SharedArrays, load

_library = load(
    kvasir_begin_row=(INT64, POINTER, INT64, POINTER, *[INT64] * 5),
    kvasir_continue_beams=(INT64, POINTER, *[INT64] * 2, *[POINTER] * 5),
    kvasir_close_holes=(INT64, POINTER, POINTER),
    kvasir_copy_rows=(None, POINTER, *[INT64] * 4, *[POINTER] * 3, INT64),
    kvasir_children_in_rows=(INT64, *[INT64] * 2, *[POINTER] * 4),
)

SOURCE_PLACE_UNIT = 1 << 16
"""A source's place is its length plus this times the number of rows from the row that reads it to the row that has it.

CrossAttention takes it as it takes a length; it is one for a row with its own source.
"""


class CacheMoves:
    """Rows of one cache, whose arrays must not move.

    `self_cache` and `cross_cache` [planes, rows, blocks, positions, numbers]: a block for each head, or one of all
    heads; `last_cross` [planes, rows, 1, heads * head_dim]; `states` [layers, rows, 1, width], not of width 0 if the
    decoder is recurrent: then `self_cache` has no positions; `per_row` [rows] each: previous tokens, past lengths,
    source lengths, lists, rows and places of sources; `owners` and `cross_owners` [rows]; `num_live` [1] is the number
    of assigned rows. The numbers of an int8 cache are multiples of `step`. With `shares_sources`, rows read the cross
    cache at the row of their source, and never read `last_cross`.
    """

    def __init__(
        self,
        self_cache: NDArray[np.number],
        cross_cache: NDArray[np.number],
        last_cross: NDArray[np.number],
        states: NDArray[np.float32],
        per_row: Sequence[NDArray[np.int32]],
        owners: NDArray[np.int64],
        cross_owners: NDArray[np.int64],
        num_live: NDArray[np.int64],
        step: np.float32 | None,
        *,
        shares_sources: bool,
    ) -> None:
        planes, rows, blocks, cross_positions, numbers = cross_cache.shape
        # Not strides: those of an axis of size 1, such as the blocks of one head, can be anything.
        position_size = numbers * cross_cache.itemsize
        block_sizes = (self_cache.shape[3] * position_size, cross_positions * position_size)
        self._dtype = cross_cache.dtype
        arrays = (np.full(1, step or 1.0, np.float32), self_cache, cross_cache, last_cross, states, *per_row)
        assert all(array.flags.c_contiguous for array in arrays), "rows are addressed by pointers"
        row_sizes = (last_cross.shape[3] * last_cross.itemsize, states.shape[3] * states.itemsize)
        sizes = (
            planes,
            rows,
            blocks,
            position_size,
            *block_sizes,
            *row_sizes,
            step is not None,
            shares_sources,
        )
        self._struct = SharedArrays(sizes, (*arrays, owners, cross_owners, num_live))
        self.address = self._struct.address
        """Address for the steps of searches."""
        self._moved_to = np.zeros(rows, np.intp)
        self._moved_to_address = self._moved_to.ctypes.data

    @staticmethod
    def is_available() -> bool:
        """Whether the library was built."""
        return _library is not None

    def begin(self, owner: int, cross: NDArray[np.number], start_token: int) -> int:
        """Assign the first free row to a request, begin it with its cross keys and values, and return it; -1 if none.

        `cross` is [planes, heads, source_len, head_dim].
        """
        assert _library is not None
        _, heads, source_len, head_dim = cross.shape
        if cross.dtype != self._dtype or cross.strides[2:] != (head_dim * cross.itemsize, cross.itemsize):
            cross = np.ascontiguousarray(cross, self._dtype)
        strides = cross.strides[:2]
        row: int = _library.kvasir_begin_row(
            self.address, owner, cross.ctypes.data, *strides, heads, source_len, start_token
        )
        return row

    def advance(
        self,
        rows: NDArray[np.intp],
        tokens: NDArray[np.int32],
        parents: NDArray[np.intp],
        finished: NDArray[np.bool_],
        common: NDArray[np.int32] | None,
    ) -> bool:
        """Continue the beams of requests that are not finished. Return whether there were enough free rows.

        Overwrites `rows` [requests, beam_size]. `common` [requests, beam_size, beam_size] is the number of tokens that
        two beams had in common before this step: only positions behind them are copied, if the cache is int8. Its
        numbers do not depend on the row that computed them.
        """
        assert _library is not None
        assert rows.flags.c_contiguous, "rows are written in place"
        tokens, parents = np.ascontiguousarray(tokens, np.int32), np.ascontiguousarray(parents, np.intp)
        failed: int = _library.kvasir_continue_beams(
            self.address,
            *rows.shape,
            rows.ctypes.data,
            parents.ctypes.data,
            tokens.ctypes.data,
            finished.ctypes.data,
            None if common is None else common.ctypes.data,
        )
        return not failed

    def close_holes(self) -> NDArray[np.intp] | None:
        """Move the last live rows into free rows before them. Return the new index of each row; None: nothing moved."""
        assert _library is not None
        return self._moved_to if _library.kvasir_close_holes(self.address, self._moved_to_address) else None


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
