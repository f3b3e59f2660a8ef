"""Buffers of a decoder step on a device, and its graphs bound to them for a number of rows."""

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bundle import tensors as names
from server.engine.kv_cache import RowIndices
from server.engine.runners.device.buckets import NOT_CAPTURED
from server.engine.runners.device.cache import DeviceCache
from server.engine.runners.device.memory import Block
from server.engine.runners.device.sessions import DeviceSessions, run_options

_STATE = (names.PREVIOUS_TOKENS, names.PAST_LENGTHS, names.SOURCE_LENGTHS)
_INT32_BYTES = 4


class StepBuffers:
    """Memory of a step for any number of rows, on the device and on the host.

    The state of rows, [3, max_rows] int32 as in `KVCache.per_row`, has two sides: a step reads one and writes the next
    tokens and lengths to the other, so that the next step needs nothing from the host.
    """

    def __init__(self, sessions: DeviceSessions, max_rows: int, dtype: type[np.floating]) -> None:
        memory, config = sessions.memory, sessions.bundle.config
        shapes = config.shapes
        self._memory, self.dtype, self.max_rows = memory, dtype, max_rows
        self.vocab_size = shapes.target_vocab_size
        (logits,) = (output for output in sessions.decoder.get_outputs() if output.name == names.STEP_LOGITS)
        self.padded_vocab = int(logits.shape[1])
        self.logits_dtype: type[np.floating] = np.float16 if logits.type == "tensor(float16)" else np.float32
        self.num_suppressed = len(config.special_tokens.suppressed)
        self.num_ranked = min(names.NUM_RANKED, self.vocab_size - self.num_suppressed)
        self.query_width = shapes.num_heads * shapes.head_dim
        item_size = np.dtype(dtype).itemsize
        self._state_bytes = 3 * max_rows * _INT32_BYTES
        self._state = memory.allocate(2 * self._state_bytes)
        self.logits = memory.allocate(max_rows * self.padded_vocab * np.dtype(self.logits_dtype).itemsize)
        self.suppressed = memory.allocate(max_rows * self.num_suppressed * 4)
        self.queries = [
            memory.allocate(max_rows * self.query_width * item_size) for _ in range(shapes.num_decoder_layers)
        ]
        self._candidates_on_device = memory.allocate(max_rows * self.num_ranked * 8)
        self._candidate_logits_on_device = memory.allocate(max_rows * self.num_ranked * 4)
        self._normalizer_on_device = memory.allocate(max_rows * 4)
        self.tokens_on_host = [memory.host_array((max_rows,), np.int32).astype(np.int32, copy=False) for _ in range(2)]
        self.candidates = memory.host_array((max_rows, self.num_ranked), np.int64).astype(np.int64, copy=False)
        self.candidate_logits = memory.host_array((max_rows, self.num_ranked), np.float32).astype(
            np.float32, copy=False
        )
        self.normalizer = memory.host_array((max_rows,), np.float32).astype(np.float32, copy=False)

    def state(self, side: int, index: int) -> int:
        """Return the address of tokens (index 0), past lengths (1) or source lengths (2)."""
        return self._state.address + side * self._state_bytes + index * self.max_rows * _INT32_BYTES

    @property
    def ranked(self) -> tuple[Block, Block, Block]:
        """Candidates (int64), their logits and the normalizers (float32), on the device."""
        return self._candidates_on_device, self._candidate_logits_on_device, self._normalizer_on_device

    def upload_state(self, per_row: NDArray[np.int32], side: int) -> None:
        """Write the state of all rows to a side, and source lengths, which no step changes, to both."""
        self._memory.upload(self.state(side, 0), per_row)
        self._memory.upload(self.state(1 - side, 2), per_row[2])

    def download_tokens(self, side: int, num_rows: int) -> None:
        """Read the tokens that a step at this side has chosen into `tokens_on_host`."""
        self._memory.download(self.tokens_on_host[side][:num_rows], self.state(1 - side, 0))

    def download_candidates(self, num_rows: int) -> None:
        """Read candidates, their logits and the normalizers into the arrays of the host."""
        arrays: tuple[NDArray[np.number], ...] = (self.candidates, self.candidate_logits, self.normalizer)
        for array, block in zip(arrays, self.ranked, strict=True):
            self._memory.download(array[:num_rows], block.address)

    def download_logits(self, rows: RowIndices) -> NDArray[np.floating]:
        """Return the logits of these rows, [rows, padded_vocab], valid after a `wait`."""
        logits = np.empty((rows.size, self.padded_vocab), self.logits_dtype)
        for index, row in enumerate(rows.tolist()):
            self._memory.download(logits[index], self.logits.address + row * logits[index].nbytes)
        return logits

    def download_queries(self, num_rows: int) -> list[NDArray[np.floating]]:
        """Return the queries of cross-attention of each layer, [rows, heads * head_dim], valid after a `wait`."""
        queries = [np.empty((num_rows, self.query_width), self.dtype) for _ in self.queries]
        for array, block in zip(queries, self.queries, strict=True):
            self._memory.download(array, block.address)
        return queries


class BoundStep:
    """The three graphs of a step, bound to a number of rows and to the side where they read their state."""

    def __init__(
        self, sessions: DeviceSessions, buffers: StepBuffers, cache: DeviceCache, num_rows: int, side: int
    ) -> None:
        self.num_rows = num_rows
        self._device = sessions.memory.ort_name
        self._sessions = sessions
        self._decoder, self._choose, self._rank = (
            session.io_binding() for session in (sessions.decoder, sessions.choose, sessions.rank)
        )
        dtype = buffers.dtype
        for index, name in enumerate(_STATE):
            self._input(self._decoder, name, np.int32, [num_rows], buffers.state(side, index))
        shapes = cache.shapes
        for layer in range(shapes.num_layers):
            key, value = 2 * layer, 2 * layer + 1
            cache_names = names.cache_names(layer, recurrent=bool(cache.state_planes))
            if cache.state_planes:
                state, cache_names = cache_names[0], cache_names[1:]
                shape = [num_rows, 1, shapes.state_width]
                read, written = cache.state_planes[side], cache.state_planes[1 - side]
                self._input(self._decoder, state, np.float32, shape, read.address(key))
                self._output(self._decoder, names.PRESENT + state, np.float32, shape, written.address(key))
            for index, name in enumerate(cache_names):
                planes = cache.cross_planes if name in cache_names[-2:] else cache.self_planes
                # A plane is stored row by row, so its first rows are a plane of fewer rows.
                shape = [num_rows, shapes.num_heads, planes.length, shapes.head_dim]
                address = planes.address(value if index % 2 else key)
                self._input(self._decoder, name, dtype, shape, address)
                self._output(self._decoder, names.PRESENT + name, dtype, shape, address)
            last_names = names.LAST_CROSS_KEY.format(layer=layer), names.LAST_CROSS_VALUE.format(layer=layer)
            for plane, name in zip((key, value), last_names, strict=True):
                shape = [num_rows, 1, buffers.query_width]
                self._input(self._decoder, name, dtype, shape, cache.last_planes.address(plane))
            queries = names.CROSS_QUERIES.format(layer=layer)
            self._output(
                self._decoder, queries, dtype, [num_rows, 1, buffers.query_width], buffers.queries[layer].address
            )
        logits = [num_rows, buffers.padded_vocab]
        self._output(self._decoder, names.STEP_LOGITS, buffers.logits_dtype, logits, buffers.logits.address)
        self._input(self._rank, names.STEP_LOGITS, buffers.logits_dtype, logits, buffers.logits.address)
        if buffers.num_suppressed:
            suppressed = [num_rows, buffers.num_suppressed]
            name, address = names.SUPPRESSED_LOGITS, buffers.suppressed.address
            self._output(self._decoder, name, np.float32, suppressed, address)
            self._input(self._rank, name, np.float32, suppressed, address)
        ranked = [num_rows, buffers.num_ranked]
        candidates, candidate_logits, normalizer = (block.address for block in buffers.ranked)
        self._output(self._decoder, names.CANDIDATE_TOKENS, np.int64, ranked, candidates)
        self._output(self._decoder, names.CANDIDATE_LOGITS, np.float32, ranked, candidate_logits)
        for binding in (self._choose, self._rank):
            self._input(binding, names.CANDIDATE_TOKENS, np.int64, ranked, candidates)
        self._output(self._rank, names.LOG_NORMALIZER, np.float32, [num_rows], normalizer)
        self._input(self._choose, names.PAST_LENGTHS, np.int32, [num_rows], buffers.state(side, 1))
        self._output(self._choose, names.NEXT_TOKENS, np.int32, [num_rows], buffers.state(1 - side, 0))
        self._output(self._choose, names.NEXT_LENGTHS, np.int32, [num_rows], buffers.state(1 - side, 1))

    def decode(self, graph: int = NOT_CAPTURED) -> None:
        """Enqueue the decoder."""
        self._sessions.decoder.run_with_iobinding(self._decoder, run_options(graph))

    def choose(self, graph: int = NOT_CAPTURED) -> None:
        """Enqueue the graph that computes the state of the next greedy step."""
        self._sessions.choose.run_with_iobinding(self._choose, run_options(graph))

    def rank(self, graph: int = NOT_CAPTURED) -> None:
        """Enqueue the graph that ranks candidates and computes their normalizers."""
        self._sessions.rank.run_with_iobinding(self._rank, run_options(graph))

    def _input(
        self, binding: ort.IOBinding, name: str, dtype: type[np.generic], shape: list[int], address: int
    ) -> None:
        binding.bind_input(name, self._device, 0, dtype, shape, address)

    def _output(
        self, binding: ort.IOBinding, name: str, dtype: type[np.generic], shape: list[int], address: int
    ) -> None:
        binding.bind_output(name, self._device, 0, dtype, shape, address)
