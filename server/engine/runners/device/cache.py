"""`KVCache` with keys and values on a device: the host assigns rows, and move.onnx moves them.

The graph is bound once for each number of moves and positions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bundle import tensors as names
from server.engine.kv_cache import CacheShapes, CrossKeysValues, KVCache, RowIndices
from server.engine.runners.device.memory import Block, DeviceMemory, Pool
from server.engine.runners.device.sessions import Captures, DeviceSessions, bucket, run_options

_WORD_BYTES = 8
_SMALLEST_POSITIONS = 16
_NUMBERS = (names.MOVE_ROWS, names.MOVE_POSITIONS, names.MOVE_LENGTH)
_CAPTURED_AFTER = 2  # runs with the same sizes: there are many sizes, most of them rare


@dataclass(frozen=True, slots=True)
class Planes:
    """Equal buffers [rows, heads, length, head_dim] back to back, keys at even indices.

    `words` is the size of a position of one head.
    """

    block: Block
    rows: int
    length: int
    plane_bytes: int
    words: int

    def address(self, plane: int) -> int:
        """Return the address of a plane."""
        return self.block.address + plane * self.plane_bytes


@dataclass(frozen=True, slots=True)
class Moves:
    """Sources and destinations of moves: rows [moves], positions [moves, positions]. Repetitions do no harm."""

    from_rows: RowIndices
    from_positions: NDArray[np.int64]
    to_rows: RowIndices
    to_positions: NDArray[np.int64]

    @classmethod
    def of_prefixes(cls, sources: RowIndices, destinations: RowIndices, lengths: NDArray[np.integer]) -> "Moves":
        """Return moves of the first `lengths` [moves] positions; no row is both a source and a destination."""
        longest = max(int(lengths.max()), 1)
        positions = np.arange(bucket(max(longest, _SMALLEST_POSITIONS), 1 << 30))
        # Positions past the end of a row repeat its last one.
        within = np.minimum(positions, np.maximum(lengths, 1)[:, None] - 1)
        return cls(sources, within, destinations, within)


class Mover:
    """Moves rows within and between the planes of one cache."""

    def __init__(self, sessions: DeviceSessions, graph_ids: Iterator[int] | None) -> None:
        self._session = sessions.move
        self._memory: DeviceMemory = sessions.memory
        self.pool = Pool(sessions.memory)
        shapes = sessions.bundle.config.shapes
        self._planes = 2 * shapes.num_decoder_layers
        self._heads = shapes.num_heads
        self._words = shapes.head_dim * names.item_size(sessions.bundle.config.precision) // _WORD_BYTES
        self._state_words = shapes.state_width * 4 // shapes.num_heads // _WORD_BYTES
        self._bindings: dict[tuple[int, int, int, int], _BoundMove] = {}
        self._captures = Captures(graph_ids, _CAPTURED_AFTER)

    def planes(self, rows: int, length: int, block: Block | None = None) -> Planes:
        """Return planes of `rows` rows with `length` positions, in the given block or a new one."""
        plane_bytes = rows * self._heads * length * self._words * _WORD_BYTES
        block = block or self._memory.allocate(self._planes * plane_bytes)
        return Planes(block, rows, length, plane_bytes, self._words)

    def states(self, rows: int) -> Planes:
        """Return planes for the states of a recurrent decoder. The graph moves two planes a layer; one is unused."""
        plane_bytes = rows * self._heads * self._state_words * _WORD_BYTES
        return Planes(self._memory.allocate(self._planes * plane_bytes), rows, 1, plane_bytes, self._state_words)

    def within(self, planes: Planes, moves: Moves) -> None:
        """Move rows within the planes of a cache, whose addresses never change."""
        num_moves, num_positions = _bucketed(moves)
        kind = (planes.block.address, planes.block.address, num_moves, num_positions)
        bound = self._bindings.get(kind)
        if bound is None:
            bound = self._bindings[kind] = self._bind(planes, planes, num_moves, num_positions)
        bound.run(moves, self._captures.graph_id(kind))

    def between(self, source: Planes, target: Planes, moves: Moves) -> None:
        """Move rows from one set of planes to another."""
        self._bind(source, target, *_bucketed(moves)).run(moves, None)

    def _bind(self, source: Planes, target: Planes, num_moves: int, num_positions: int) -> "_BoundMove":
        return _BoundMove(
            self._session,
            self._memory,
            self.pool,
            (source, target),
            (self._planes, self._heads),
            num_moves,
            num_positions,
        )


def _bucketed(moves: Moves) -> tuple[int, int]:
    num_moves, num_positions = moves.from_positions.shape
    return bucket(num_moves, 1 << 30), num_positions


class _BoundMove:
    """The graph bound to planes, for a number of moves and positions."""

    def __init__(
        self,
        session: ort.InferenceSession,
        memory: DeviceMemory,
        pool: Pool,
        sides: tuple[Planes, Planes],
        sizes: tuple[int, int],
        num_moves: int,
        num_positions: int,
    ) -> None:
        """Bind the graph. `sides` are source and target; `sizes` are planes and heads."""
        self._session, self._memory = session, memory
        self._num_moves = num_moves
        self._binding = session.io_binding()
        # Rows, positions and lengths of both sides are contiguous, so that one copy uploads them.
        counts = [num_moves, num_moves * num_positions, 1] * 2
        self._numbers = np.zeros(sum(counts), np.int64)
        self._block = pool.take(self._numbers.nbytes)
        self._keep_alive = [planes.block for planes in sides]
        offsets = [0, *np.cumsum(counts).tolist()]
        self._parts = [self._numbers[begin:end] for begin, end in pairwise(offsets)]
        inputs = ((side, name) for side in ("from", "to") for name in _NUMBERS)
        shapes = [[num_moves], [num_moves, num_positions], [1]] * 2
        for (side, name), shape, offset in zip(inputs, shapes, offsets, strict=False):
            self._input(name.format(side=side), shape, self._block.address + offset * _WORD_BYTES)
        num_planes, heads = sizes
        source, target = sides
        words = source.words
        self._parts[2][0], self._parts[5][0] = source.length, target.length
        for plane in range(num_planes):
            for side, planes in (("from", source), ("to", target)):
                shape = [heads * planes.rows * planes.length, words]
                self._input(names.MOVE_PLANE.format(side=side, plane=plane), shape, planes.address(plane))
            shape = [heads * target.rows * target.length, words]
            moved = names.MOVED_PLANE.format(plane=plane)
            self._binding.bind_output(moved, memory.ort_name, 0, np.int64, shape, target.address(plane))

    def _input(self, name: str, shape: list[int], address: int) -> None:
        self._binding.bind_input(name, self._memory.ort_name, 0, np.int64, shape, address)

    def run(self, moves: Moves, graph: int | None) -> None:
        from_rows, from_positions, _, to_rows, to_positions, _ = self._parts
        num_moves = moves.from_rows.size
        for part, numbers in (
            (from_rows, moves.from_rows),
            (from_positions.reshape(self._num_moves, -1), moves.from_positions),
            (to_rows, moves.to_rows),
            (to_positions.reshape(self._num_moves, -1), moves.to_positions),
        ):
            part[:num_moves] = numbers
            part[num_moves:] = numbers[0]  # unused moves repeat the first one
        self._memory.upload(self._block.address, self._numbers)
        self._session.run_with_iobinding(self._binding, run_options() if graph is None else run_options(graph))


@dataclass(frozen=True, slots=True)
class EncodedRow:
    """A row of an encoder's output, in the memory where the encoder wrote it."""

    planes: Planes
    row: int
    source_len: int


class DeviceCache(KVCache):
    """Rows on a device. Operations happen there later, in the order of the calls."""

    self_cache: NDArray[np.number]  # never set: the host has no copy
    cross_cache: NDArray[np.number]
    last_cross: NDArray[np.number]

    def __init__(
        self, shapes: CacheShapes, max_rows: int, dtype: type[np.number], memory: DeviceMemory, mover: Mover
    ) -> None:
        self._memory, self._mover = memory, mover
        self._dtype = np.dtype(dtype)
        self._unwritten: list[tuple[int, EncodedRow]] = []
        self.num_changes = 0
        """Number of rows begun or moved so far; a change invalidates steps that ran ahead."""
        super().__init__(shapes, max_rows, dtype)

    def _allocate(self, dtype: type[np.number], is_native: bool) -> None:
        recurrent = self.shapes.state_width > 0
        self.self_planes = self._mover.planes(self.max_rows, 0 if recurrent else self.shapes.max_target_tokens)
        # A step reads the states of one side and writes those of the other: a step that ran ahead in vain must leave
        # those that it read.
        self.state_planes = [self._mover.states(self.max_rows) for _ in range(2 if recurrent else 0)]
        self.state_side = 0
        self.cross_planes = self._mover.planes(self.max_rows, self.shapes.max_source_tokens)
        self.last_planes = self._mover.planes(self.max_rows, 1)

    def _open_moves(self) -> None:
        """Return None: the device moves rows."""

    def _allocate_per_row(self) -> NDArray[np.int32]:
        return self._memory.host_array((3, self.max_rows), np.int32).astype(np.int32, copy=False)

    def write_source(self, row: int, cross: CrossKeysValues, start_token: int) -> None:
        """Begin a row with its cross keys and values and an empty past."""
        assert isinstance(cross, EncodedRow), "the sentence was encoded by another kind of runner"
        self.num_changes += 1
        self._unwritten.append((row, cross))
        self._begin(row, cross.source_len, start_token)

    def flush(self) -> None:
        """Write the sources of rows that have begun, one move for all that were encoded together."""
        while self._unwritten:
            planes = self._unwritten[0][1].planes
            together = [(row, encoded) for row, encoded in self._unwritten if encoded.planes is planes]
            self._unwritten = [other for other in self._unwritten if other[1].planes is not planes]
            rows = np.array([row for row, _ in together])
            sources = np.array([encoded.row for _, encoded in together])
            lengths = np.array([encoded.source_len for _, encoded in together])
            self._mover.between(planes, self.cross_planes, Moves.of_prefixes(sources, rows, lengths))
            last = Moves(sources, lengths[:, None] - 1, rows, np.zeros_like(lengths)[:, None])
            self._mover.between(planes, self.last_planes, last)

    def cross_keys(self, row: int, layer: int) -> NDArray[np.float32]:
        """Return the cross-attention keys of a row in this layer, [heads, source_len, head_dim]."""
        self.flush()
        planes = self.cross_planes
        keys = np.empty((self.shapes.num_heads, planes.length, self.shapes.head_dim), self._dtype)
        self._memory.download(keys, planes.address(2 * (layer % self.shapes.num_layers)) + row * keys.nbytes)
        self._memory.wait(self._memory.mark())
        return keys[:, : self.source_lengths[row]].astype(np.float32)

    def _copy(self, sources: RowIndices, destinations: RowIndices) -> None:
        if not sources.size:  # the beams only changed their order
            return
        self.num_changes += 1
        self.flush()
        super()._copy(sources, destinations)

    def count_step(self) -> None:
        """Record that a step has been used, whose states are the present ones."""
        if self.state_planes:
            self.state_side = 1 - self.state_side

    def _copy_past(self, sources: RowIndices, destinations: RowIndices) -> None:
        if self.state_planes:
            first = np.zeros((sources.size, 1), np.int64)
            self._mover.within(self.state_planes[self.state_side], Moves(sources, first, destinations, first))
            return
        self._mover.within(self.self_planes, Moves.of_prefixes(sources, destinations, self.past_lengths[sources]))

    def _copy_source(self, sources: RowIndices, destinations: RowIndices) -> None:
        self._mover.within(self.cross_planes, Moves.of_prefixes(sources, destinations, self.source_lengths[sources]))
        first = np.zeros((sources.size, 1), np.int64)
        self._mover.within(self.last_planes, Moves(sources, first, destinations, first))
