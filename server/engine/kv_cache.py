"""Preallocated rows of keys and values, and their assignment to requests.

A row is one line of the decode batch. The live rows of all requests are the first rows of every buffer, so a decoder
step runs over a contiguous slice without copies. Three events move a row: a beam continues the hypothesis of another
row, a beam request spreads over its rows after its first step, or a hole of a finished request is closed.
"""

import mmap
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bundle.manifest import Shapes
from bundle.tensors import INT8_CACHE_STEP
from kernels.cache_rows import SOURCE_PLACE_UNIT, CacheMoves, RowCopier, children_in_rows

RowIndices = NDArray[np.intp]


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


class SourceRows:
    """Rows of the cross cache, by the row that reads them: its own, or with `is_shared` one for all beams of a request.

    A shared source does not move while a row reads it, and its row is free when no live row does. `lengths` [max_rows]
    are the lengths of sources, which the cache sets.
    """

    def __init__(self, lengths: NDArray[np.int32], *, is_shared: bool) -> None:
        self.is_shared = is_shared
        self._lengths = lengths
        self.rows = np.arange(lengths.size, dtype=np.int32)
        """The row of the cross cache that each row reads, [max_rows]."""
        self.places = lengths.copy()
        """The input of graphs for the lengths of sources, [max_rows]; see `SOURCE_PLACE_UNIT`."""

    def begin(self, row: int, is_live: NDArray[np.bool_]) -> int:
        """Return the row of the cross cache for the source of a row that begins, of the length set before.

        With `is_shared`, it is the first one that no other live row reads; there is one while a row is free.
        """
        if self.is_shared:
            is_free = np.ones(self.rows.size, np.bool_)
            is_free[self.rows[is_live & (np.arange(is_live.size) != row)]] = False
            self.rows[row] = is_free.argmax()
        self._place(row)
        return int(self.rows[row])

    def follow(self, sources: RowIndices, destinations: RowIndices) -> None:
        """Let rows read what others read, of the lengths set before."""
        if self.is_shared:
            self.rows[destinations] = self.rows[sources]
        self._place(destinations)

    def places_of(self, row: int, num_rows: int) -> NDArray[np.int32]:
        """Return places for the first rows of a graph [num_rows] that all read the source of one row."""
        rows_from_here = self.rows[row] - np.arange(num_rows, dtype=np.int32)
        places: NDArray[np.int32] = self._lengths[row] + rows_from_here * SOURCE_PLACE_UNIT
        return places

    def _place(self, rows: RowIndices | int) -> None:
        self.places[rows] = self._lengths[rows] + (self.rows[rows] - rows) * SOURCE_PLACE_UNIT


class EncodedElsewhere(Protocol):
    """Keys and values of one sentence in device memory, readable by the cache of the same runner only."""

    @property
    def source_len(self) -> int:
        """Number of source tokens."""
        ...


CrossKeysValues = NDArray[np.number] | EncodedElsewhere
"""Cross keys and values of one sentence, [2 * layers, heads, source_len, head_dim], keys at even indices."""

FREE = -1
NO_LIST = -1
"""List of a row that may have all tokens."""


@dataclass(frozen=True, slots=True)
class CacheShapes:
    """Dimensions of a row. `state_width` is 0 unless the decoder is recurrent."""

    num_layers: int
    num_heads: int
    head_dim: int
    max_source_tokens: int
    max_target_tokens: int
    state_width: int = 0

    @classmethod
    def of(cls, shapes: Shapes) -> "CacheShapes":
        """Return the dimensions of a bundle."""
        return cls(
            num_layers=shapes.num_decoder_layers,
            num_heads=shapes.num_heads,
            head_dim=shapes.head_dim,
            max_source_tokens=shapes.max_source_tokens,
            max_target_tokens=shapes.max_target_tokens,
            state_width=shapes.state_width,
        )


def fill_holes(is_live: NDArray[np.bool_]) -> tuple[RowIndices, RowIndices]:
    """Return the fewest moves that make live indices contiguous: `array[holes] = array[movers]`.

    Holes are the free indices below the number of live ones; movers are the live indices from there on, equally many.
    """
    num_live = int(np.count_nonzero(is_live))
    holes = (~is_live[:num_live]).nonzero()[0]
    movers = num_live + is_live[num_live:].nonzero()[0]
    return holes, movers


class KVCache:
    """Keys and values of every row, and the state of every row for the next decoder step.

    `self_cache` [2 * layers, rows, heads, max_target_tokens, head_dim] (keys at even indices) is valid up to
    `past_lengths`, `cross_cache` [2 * layers, rows, heads, max_source_tokens, head_dim] up to `source_lengths`; later
    positions are never read. An even number of positions is increased by one. `last_cross` [2 * layers, rows, 1, heads
    * head_dim] repeats the last source position: GroupQueryAttention always appends one, so cross-attention appends
    what is there already. It has real numbers where the caches have int8.

    `is_native`: the native operators read the cache. All heads of a position are side by side in memory then, so that
    a short sentence touches few pages (see kernels/layout.py), and the beams of a request share its source:
    `sources` has the row of `cross_cache` that each reads, and nothing reads `last_cross`.

    With a recurrent decoder, `self_cache` has no positions, and `states` [layers, rows, 1, state_width] are the states
    of its layers, undefined where the past length is 0.
    """

    def __init__(
        self, shapes: CacheShapes, max_rows: int, dtype: type[np.number] = np.float32, *, is_native: bool = False
    ) -> None:
        self.shapes, self.max_rows, self._is_by_position = shapes, max_rows, is_native
        self._step = np.float32(INT8_CACHE_STEP) if dtype is np.int8 else None
        self._allocate(dtype, is_native)
        # A single array, so that moving a row is one assignment.
        self.per_row = self._allocate_per_row()
        self.previous_tokens, self.past_lengths, self.source_lengths = self.per_row
        self.source_lengths[:] = 1
        self.sources = SourceRows(self.source_lengths, is_shared=is_native)
        self.list_of_row = np.full(max_rows, NO_LIST, np.int32)
        """The list of tokens that a row may have; see `TokenLists`."""
        self._owners = np.full(max_rows, FREE, np.int64)
        # The request whose cross keys and values a row has; they are copied once for all beams of a request.
        self._cross_owners = np.full(max_rows, FREE, np.int64)
        self._num_live = np.zeros(1, np.int64)
        self._may_have_holes = False
        self.moves = self._open_moves()
        """Moves of rows in C, or None."""

    def _open_moves(self) -> CacheMoves | None:
        """Return the moves in C, or None if NumPy moves rows."""
        if not CacheMoves.is_available() or not self.cross_cache.size:
            return None
        own, cross = (blocks_of(cache, self._is_by_position) for cache in (self.self_cache, self.cross_cache))
        per_row = (*self.per_row, self.list_of_row, self.sources.rows, self.sources.places)
        arrays = (own, cross, self.last_cross, self.states, per_row, self._owners, self._cross_owners, self._num_live)
        return CacheMoves(*arrays, self._step, shares_sources=self.sources.is_shared)

    def _allocate(self, dtype: type[np.number], is_native: bool) -> None:
        shapes, planes = self.shapes, 2 * self.shapes.num_layers
        rows = (planes, self.max_rows, shapes.num_heads, shapes.head_dim)
        # At distances of powers of two, all heads of all rows would share a few sets of the processor's caches and
        # evict each other; an odd number of positions spreads them.
        self._own_positions = 0 if shapes.state_width else shapes.max_target_tokens | 1
        self.self_cache = lazy_cache(*rows, self._own_positions, dtype, is_native)
        self.states = np.zeros((shapes.num_layers, self.max_rows, 1, shapes.state_width), np.float32)
        self.cross_cache = lazy_cache(*rows, shapes.max_source_tokens | 1, dtype, is_native)
        last_dtype = np.float32 if dtype is np.int8 else dtype
        self.last_cross = np.zeros((planes, self.max_rows, 1, shapes.num_heads * shapes.head_dim), last_dtype)
        self._self_rows = RowCopier(blocks_of(self.self_cache, self._is_by_position))
        self._cross_rows = RowCopier(blocks_of(self.cross_cache, self._is_by_position))

    def single_row(self) -> NDArray[np.number]:
        """Return memory like that of `self_cache`, of one row."""
        shapes = self.shapes
        sizes = (2 * shapes.num_layers, 1, shapes.num_heads, shapes.head_dim, self._own_positions)
        return lazy_cache(*sizes, self.self_cache.dtype.type, self._is_by_position)

    def declared(self, cache: NDArray[np.number], plane: int, num_rows: int) -> NDArray[np.number]:
        """Return the memory of the first rows of a plane of `self_cache` or `cross_cache`, whatever its order is.

        It has the shape that graphs declare, [num_rows, heads, positions, head_dim].
        """
        return blocks_of(cache, self._is_by_position)[plane, :num_rows].reshape(num_rows, *cache.shape[2:])

    def _allocate_per_row(self) -> NDArray[np.int32]:
        return np.zeros((3, self.max_rows), np.int32)

    @property
    def num_rows(self) -> int:
        """Rows of a decoder step: one more than the last live row."""
        live = np.flatnonzero(self._owners != FREE)
        return int(live[-1]) + 1 if live.size else 0

    @property
    def num_live(self) -> int:
        """Rows assigned to requests."""
        return int(self._num_live[0])

    def live_lists(self) -> NDArray[np.int32]:
        """Return the lists of the rows that are assigned to requests."""
        lists: NDArray[np.int32] = self.list_of_row[self._owners != FREE]
        return lists

    def begin(self, owner: int, cross: CrossKeysValues, start_token: int) -> int:
        """Assign the first free row to a request, begin it with its cross keys and values, and return it."""
        if self.moves is None or not isinstance(cross, np.ndarray):
            row = int(self.assign(owner, 1)[0])
            self.write_source(row, cross, start_token)
            return row
        row = self.moves.begin(owner, cross, start_token)
        assert row >= 0, "the scheduler admitted more rows than the cache has"
        return row

    def assign(self, owner: int, num_rows: int) -> RowIndices:
        """Assign the first free rows to a request and return them. The scheduler ensures that there are enough."""
        rows = np.flatnonzero(self._owners == FREE)[:num_rows]
        assert rows.size == num_rows, "the scheduler admitted more rows than the cache has"
        self._owners[rows] = owner
        self._num_live[0] += num_rows
        return rows

    def write_source(self, row: int, cross: CrossKeysValues, start_token: int) -> None:
        """Begin a row with its cross keys and values and an empty past."""
        assert isinstance(cross, np.ndarray), "the sentence was encoded by another kind of runner"
        self._begin(row, cross.shape[2], start_token)
        self.cross_cache[:, self.sources.rows[row], :, : cross.shape[2]] = cross
        last = cross[:, :, -1].reshape(cross.shape[0], -1)
        self.last_cross[:, row, 0] = last if self._step is None else last * self._step

    def _begin(self, row: int, source_len: int, start_token: int) -> None:
        self.source_lengths[row] = source_len
        self.sources.begin(row, self._owners != FREE)
        self.past_lengths[row] = 0
        self.previous_tokens[row] = start_token
        self.list_of_row[row] = NO_LIST
        self._cross_owners[row] = self._owners[row]

    def cross_keys(self, row: int, layer: int) -> NDArray[np.float32]:
        """Return the cross-attention keys of a row in this layer, [heads, source_len, head_dim]."""
        keys = self.cross_cache[2 * layer, self.sources.rows[row], :, : self.source_lengths[row]]
        return keys.astype(np.float32) * (1 if self._step is None else self._step)

    def release(self, rows: RowIndices) -> None:
        """Free the rows of a finished request. Their content is overwritten lazily."""
        self._owners[rows] = FREE
        self._cross_owners[rows] = FREE
        self._num_live[0] = np.count_nonzero(self._owners != FREE)
        self._may_have_holes = True

    def note_holes(self) -> None:
        """Note that `moves` has freed rows."""
        self._may_have_holes = True

    def advance(
        self,
        rows: RowIndices,
        tokens: NDArray[np.int32],
        parents: NDArray[np.intp],
        finished: NDArray[np.bool_],
        common: NDArray[np.int32] | None = None,
    ) -> None:
        """Let every beam of the requests that are not finished continue its parent with its token.

        Overwrites `rows` [requests, beam_size] as `select` does. `common` [requests, beam_size, beam_size], if known,
        is the number of tokens that two beams had in common before this step.
        """
        if self.moves is not None:
            has_rows = self.moves.advance(rows, tokens, parents, finished, common)
            assert has_rows, "the scheduler admitted more rows than the cache has"
            return
        runs_on = (~finished).nonzero()[0]
        new_rows = rows[runs_on]
        if rows.shape[1] > 1:
            new_rows = self.select(new_rows, parents[runs_on])
            rows[runs_on] = new_rows
        self.previous_tokens[new_rows] = tokens[runs_on]

    def select(self, rows: RowIndices, parents: NDArray[np.integer]) -> RowIndices:
        """Let every beam continue its parent, and return the new rows [requests, beam_size] of the beams.

        `rows` [requests, beam_size] are the old rows, `parents` [requests, beam_size] the index of each beam's parent
        within its request. A request that has only its first row (all of `rows[i]` are equal) is assigned the others
        here, and all its beams continue that row.
        """
        beam_size = rows.shape[1]
        unforked = (rows[:, 0] == rows[:, -1]).nonzero()[0] if beam_size > 1 else ()
        if len(unforked):
            rows, parents = rows.copy(), parents.copy()
            parents[unforked] = 0
            for request in unforked:
                rows[request, 1:] = self.assign(int(self._owners[rows[request, 0]]), beam_size - 1)
        rows, sources, destinations = children_in_rows(rows, parents)
        if sources.size:
            self._copy(sources, destinations)
        return rows

    def close_holes(self) -> RowIndices | None:
        """Move the last live rows into the free rows before them.

        Returns the new index of each row, [max_rows], or None if the live rows were contiguous already.
        """
        if not self._may_have_holes:
            return None
        self._may_have_holes = False
        if self.moves is not None:
            return self.moves.close_holes()
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
        self._copy_past(sources, destinations)
        owners = self._cross_owners[sources]
        different = (owners != self._cross_owners[destinations]).nonzero()[0]
        if different.size and not self.sources.is_shared:
            others, to = sources[different], destinations[different]
            self._copy_source(others, to)
            self._cross_owners[to] = owners[different]
        self.per_row[:, destinations] = self.per_row[:, sources]
        self.list_of_row[destinations] = self.list_of_row[sources]
        self.sources.follow(sources, destinations)

    def _copy_past(self, sources: RowIndices, destinations: RowIndices) -> None:
        if self.shapes.state_width:
            self.states[:, destinations] = self.states[:, sources]
        else:
            self._self_rows.copy(sources, destinations, self.past_lengths[sources])

    def _copy_source(self, sources: RowIndices, destinations: RowIndices) -> None:
        self._cross_rows.copy(sources, destinations, self.source_lengths[sources])
        self.last_cross[:, destinations] = self.last_cross[:, sources]
