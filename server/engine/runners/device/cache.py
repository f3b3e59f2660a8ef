"""`KVCache` with keys and values on a device: the host assigns rows, the device moves them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from server.engine.kv_cache import CacheShapes, CrossKeysValues, KVCache, RowIndices
from server.engine.runners.device.memory import DeviceMemory
from server.engine.runners.device.row_mover import Mover, Moves, Planes


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
