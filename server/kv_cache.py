"""Rows of preallocated keys and values, and the rules by which rows change hands.

A row is one line of the decode batch. Live rows of all requests share the first places of every buffer, so one decoder
step runs over a contiguous slice and nothing is copied to bring them together. Only three things ever move a row:
a beam that continues another row's hypothesis, a beam request that spreads over its rows after the first step, and the
closing of holes that finished requests leave.
"""

import mmap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from export.bundle import INT8_CACHE_STEP

RowIndices = NDArray[np.intp]
CrossKeysValues = NDArray[np.number]
"""Of one sentence, [2 * layers, heads, source_len, head_dim], keys at even places."""

FREE = -1


@dataclass(frozen=True, slots=True)
class CacheShapes:
    """What a row must hold."""

    num_layers: int
    num_heads: int
    head_dim: int
    max_source_tokens: int
    max_target_tokens: int


def fill_holes(is_live: NDArray[np.bool_]) -> tuple[RowIndices, RowIndices]:
    """How to make live places contiguous with the fewest moves: `array[holes] = array[movers]`.

    Holes are free places before the number of live ones; movers are live places from there on, equally many.
    """
    num_live = int(np.count_nonzero(is_live))
    holes = np.flatnonzero(~is_live[:num_live])
    movers = num_live + np.flatnonzero(is_live[num_live:])
    return holes, movers


def _lazy_zeros(shape: tuple[int, ...], dtype: type[np.number]) -> NDArray[np.number]:
    """Memory that the system hands out page by page: rows and positions never used cost nothing.

    NumPy asks for huge pages, which hold many positions each, so that the first of them would cost as much as all.
    """
    num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer(mmap.mmap(-1, num_bytes), dtype).reshape(shape)


class KVCache:
    """Keys and values of every row, and per row what the next decoder step needs to know.

    `self_cache` [2 * layers, rows, heads, max_target_tokens, head_dim] (keys at even places) is valid up to
    `past_lengths`, `cross_cache` [2 * layers, rows, heads, max_source_tokens, head_dim] up to `source_lengths`;
    whatever lies behind is never read. `last_cross` [2 * layers, rows, 1, heads * head_dim] repeats the last source
    position: GroupQueryAttention always appends one, so cross-attention hands it what already is there. It holds the
    numbers that int8 caches stand for.
    """

    def __init__(self, shapes: CacheShapes, max_rows: int, dtype: type[np.number] = np.float32) -> None:
        self.shapes = shapes
        self.max_rows = max_rows
        planes = 2 * shapes.num_layers
        per_row = (planes, max_rows, shapes.num_heads)
        self.self_cache = _lazy_zeros((*per_row, shapes.max_target_tokens, shapes.head_dim), dtype)
        self.cross_cache = _lazy_zeros((*per_row, shapes.max_source_tokens, shapes.head_dim), dtype)
        last_dtype = np.float32 if dtype is np.int8 else dtype
        self._step = np.float32(INT8_CACHE_STEP) if dtype is np.int8 else None
        self.last_cross = np.zeros((planes, max_rows, 1, shapes.num_heads * shapes.head_dim), last_dtype)
        self.previous_tokens = np.zeros(max_rows, np.int32)
        self.past_lengths = np.zeros(max_rows, np.int32)
        self.source_lengths = np.ones(max_rows, np.int32)
        self._owners = np.full(max_rows, FREE, np.int64)
        # Whose cross keys and values a row holds; beams of one request need them copied only once.
        self._cross_owners = np.full(max_rows, FREE, np.int64)

    @property
    def num_rows(self) -> int:
        """Rows a decoder step must run over: one more than the last live row."""
        live = np.flatnonzero(self._owners != FREE)
        return int(live[-1]) + 1 if live.size else 0

    @property
    def num_live(self) -> int:
        """Rows that belong to a request."""
        return int(np.count_nonzero(self._owners != FREE))

    def take(self, owner: int, num_rows: int) -> RowIndices:
        """Give the first free rows to a request. The scheduler has made sure that there are enough."""
        rows = np.flatnonzero(self._owners == FREE)[:num_rows]
        assert rows.size == num_rows, "the scheduler admitted more rows than the cache has"
        self._owners[rows] = owner
        return rows

    def write_source(self, row: int, cross: CrossKeysValues, start_token: int) -> None:
        """Begin a row: its cross keys and values, and an empty past."""
        source_len = cross.shape[2]
        self.cross_cache[:, row, :, :source_len] = cross
        last = cross[:, :, -1].reshape(cross.shape[0], -1)
        self.last_cross[:, row, 0] = last if self._step is None else last * self._step
        self.source_lengths[row] = source_len
        self.past_lengths[row] = 0
        self.previous_tokens[row] = start_token
        self._cross_owners[row] = self._owners[row]

    def cross_keys(self, row: int, layer: int) -> NDArray[np.float32]:
        """The keys that a row's cross-attention looks at in this layer, [heads, source_len, head_dim]."""
        keys = self.cross_cache[2 * layer, row, :, : self.source_lengths[row]].astype(np.float32)
        return keys if self._step is None else keys * self._step

    def release(self, rows: RowIndices) -> None:
        """Take rows back from a request that ended. Their content stays until somebody needs the place."""
        self._owners[rows] = FREE
        self._cross_owners[rows] = FREE

    def select(self, rows: RowIndices, parents: NDArray[np.integer]) -> RowIndices:
        """Let every beam continue its parent; returns the rows [requests, beam_size] where the beams now lie.

        `rows` [requests, beam_size] is where they lay, `parents` [requests, beam_size] names each one's parent among
        its siblings. The first child stays in its parent's row; only further children are copied, into rows whose
        beam died. So no row is read after it was written, in whatever order the copies run.
        A request that has only its first row yet (all of `rows[i]` the same) is given the rest here.
        """
        parent_rows = np.take_along_axis(rows, parents, axis=1)
        if rows.shape[1] > 1:
            unforked = np.flatnonzero(rows[:, 0] == rows[:, 1])
            if unforked.size:
                rows = rows.copy()
                for request in unforked:
                    rows[request, 1:] = self.take(int(self._owners[rows[request, 0]]), rows.shape[1] - 1)
        if np.array_equal(parent_rows, rows):
            return rows
        flat_parents = parent_rows.ravel()
        places = np.arange(flat_parents.size)
        first_child = np.empty(self.max_rows, np.intp)
        first_child[flat_parents[::-1]] = places[::-1]  # the last assignment wins: the first child
        stays = first_child[flat_parents] == places
        survives = np.zeros(self.max_rows, np.bool_)
        survives[flat_parents] = True
        flat_rows = rows.ravel()
        # Both run request by request, and within a request as many rows die as children need a place.
        destinations = flat_rows[~survives[flat_rows]]
        new_rows = flat_parents.copy()
        new_rows[~stays] = destinations
        self._copy(flat_parents[~stays], destinations)
        return new_rows.reshape(rows.shape)

    def close_holes(self) -> RowIndices | None:
        """Move the last live rows into free places before them.

        Returns where each row went, [max_rows], or None when live rows already were contiguous.
        """
        holes, movers = fill_holes(self._owners != FREE)
        if not holes.size:
            return None
        owners = self._owners[movers]
        self._copy(movers, holes)
        self._owners[holes] = owners
        self._owners[movers] = FREE
        self._cross_owners[movers] = FREE
        moved_to = np.arange(self.max_rows)
        moved_to[movers] = holes
        return moved_to

    def _copy(self, sources: RowIndices, destinations: RowIndices) -> None:
        """Copy the valid prefix of rows; no row is both a source and a destination."""
        different_cross = self._cross_owners[sources] != self._cross_owners[destinations]
        lengths = self.past_lengths[sources]
        for source, destination, length in zip(sources.tolist(), destinations.tolist(), lengths.tolist(), strict=True):
            self.self_cache[:, destination, :, :length] = self.self_cache[:, source, :, :length]
        for source, destination in zip(
            sources[different_cross].tolist(), destinations[different_cross].tolist(), strict=True
        ):
            length = int(self.source_lengths[source])
            self.cross_cache[:, destination, :, :length] = self.cross_cache[:, source, :, :length]
            self.last_cross[:, destination] = self.last_cross[:, source]
        self.past_lengths[destinations] = lengths
        self.source_lengths[destinations] = self.source_lengths[sources]
        self.previous_tokens[destinations] = self.previous_tokens[sources]
        self._cross_owners[destinations] = self._cross_owners[sources]
