"""Moves of cache rows on a device by move.onnx, bound once for each number of moves and positions."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bundle import tensors as names
from server.engine.kv_cache import RowIndices
from server.engine.runners.device.buckets import Captures, bucket
from server.engine.runners.device.memory import Block, DeviceMemory, Pool
from server.engine.runners.device.sessions import DeviceSessions, run_options

_WORD_BYTES = 8
_SMALLEST_POSITIONS = 16
_NUMBERS = (names.MOVE_ROWS, names.MOVE_POSITIONS, names.MOVE_LENGTH)
_CAPTURED_AFTER = 2  # runs with the same sizes: there are many sizes, most of them rare


@dataclass(frozen=True, slots=True)
class Planes:
    """Equal buffers [rows, heads, length, head_dim] one after the other, keys at even indices.

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
