"""`ModelRunner` on a device: caches, logits and token selection stay there, and token ids are copied to the host.

A step runs the decoder's graph and then the graph that chooses, over a number of rows that is a power of two; each
number has its own bindings and CUDA graphs. The additional rows are free rows, which may be overwritten.

A greedy step starts before the host requests it: the device has chosen the tokens that the host is about to read, so
the next step needs nothing from the host while the same rows continue with them. The device computes it while the host
does its part of the present step. If rows have changed meanwhile, the step is repeated: it reads and writes the same
addresses.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bundle import tensors as names
from server.engine.kv_cache import CacheShapes, CrossKeysValues, KVCache, RowIndices
from server.engine.model_runner import NO_ROWS, Candidates, check_finite
from server.engine.runners.device.cache import DeviceCache, EncodedRow, Mover
from server.engine.runners.device.memory import Block
from server.engine.runners.device.sessions import NOT_CAPTURED, Captures, DeviceSessions, bucket, run_options
from server.engine.runners.encoder_runs import embedded_in_runs, encoded_in_runs
from server.interface.request import Pooling, TokenIds

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


# The fixed cost of an encoder run, in tokens: not measured, and larger than on a CPU.
_RUN_COSTS_TOKENS = 32
_DTYPES: dict[names.Precision, type[np.floating]] = {"float32": np.float32, "float16": np.float16}


@dataclass(slots=True)
class _Step:
    """A greedy step in the queue: its assumptions, and where and when its tokens reach the host."""

    num_rows: int
    side: int
    num_changes: int
    mark: int
    tokens: NDArray[np.int32]  # at its beginning
    past_lengths: NDArray[np.int32]


class DeviceRunner:
    """Runner of one engine. One thread at a time calls `encode` and `decode`."""

    def __init__(
        self,
        sessions: DeviceSessions,
        max_rows: int,
        max_encoder_tokens: int,
        *,
        captures: bool = True,
        runs_ahead: bool = True,
    ) -> None:
        """Open a runner. Without `captures` it has no CUDA graphs; without `runs_ahead` steps wait for the host."""
        self._sessions, self._memory = sessions, sessions.memory
        config = sessions.bundle.config
        shapes, special = config.shapes, config.special_tokens
        self.start_token = special.decoder_start
        self.has_decoder = True
        self.token_lists = None
        self.prefill = None
        self.attention_scale = config.attention_scale
        self._max_encoder_tokens = max_encoder_tokens
        self._dtype = _DTYPES[config.precision]
        graph_ids = sessions.graph_ids if captures and self._memory.queue is not None else None
        self._mover = Mover(sessions, graph_ids)
        self._cache = DeviceCache(
            CacheShapes.of(shapes),
            max_rows,
            self._dtype,
            self._memory,
            self._mover,
        )
        self.cache: KVCache = self._cache
        self._buffers = StepBuffers(sessions, max_rows, self._dtype)
        self._steps: dict[tuple[int, int], BoundStep] = {}
        self._captures = Captures(graph_ids)
        self._runs_ahead = runs_ahead
        self._ahead: _Step | None = None
        self._changes_seen = 0

    def embed(self, sources: Sequence[TokenIds], poolings: Sequence[Pooling]) -> list[NDArray[np.float32]]:
        """Embed sentences in encoder runs like those of `encode`."""
        end = self._sessions.bundle.config.special_tokens.end_of_sequence
        return embedded_in_runs(sources, poolings, self._max_encoder_tokens, self._hidden_run, end, _RUN_COSTS_TOKENS)

    def _hidden_run(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> list[NDArray[np.float32]]:
        binding, inputs = self._encoder_inputs(tokens, lengths)
        binding.bind_output(names.HIDDEN_STATES)
        self._sessions.encoder.run_with_iobinding(binding, run_options())
        binding.synchronize_outputs()
        del inputs
        hidden = binding.copy_outputs_to_cpu()[0].astype(np.float32)
        return [hidden[row, :length] for row, length in enumerate(lengths.tolist())]

    def encode(self, sources: Sequence[TokenIds]) -> list[CrossKeysValues]:
        """Encode sentences of similar length together, at most `max_encoder_tokens` padded tokens a run."""
        return encoded_in_runs(sources, self._max_encoder_tokens, self._encode_run, _RUN_COSTS_TOKENS)

    def _encode_run(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> list[CrossKeysValues]:
        rows, width = tokens.shape
        shapes = self._cache.shapes
        whole = (2 * shapes.num_layers, rows, shapes.num_heads, width, shapes.head_dim)
        num_bytes = int(np.prod(whole)) * np.dtype(self._dtype).itemsize
        planes = self._mover.planes(rows, width, self._mover.pool.take(num_bytes))
        binding, inputs = self._encoder_inputs(tokens, lengths)
        binding.bind_output(names.CROSS_KEYS_VALUES, self._memory.ort_name, 0, self._dtype, whole, planes.block.address)
        self._sessions.encoder.run_with_iobinding(binding, run_options())
        del inputs
        return [EncodedRow(planes, row, length) for row, length in enumerate(lengths.tolist())]

    def _encoder_inputs(
        self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]
    ) -> tuple[ort.IOBinding, list[Block]]:
        """Return a binding with the inputs of an encoder run, and their memory, which is held until it is queued."""
        binding, device = self._sessions.encoder.io_binding(), self._memory.ort_name
        inputs = []
        for name, array in ((names.SOURCE_TOKENS, tokens), (names.SOURCE_LENGTHS, lengths)):
            block = self._mover.pool.take(array.nbytes)
            self._memory.upload(block.address, array)
            binding.bind_input(name, device, 0, np.int32, array.shape, block.address)
            inputs.append(block)
        binding.bind_cpu_input(names.SOURCE_WIDTH, np.array(tokens.shape[1], np.int32))
        return binding, inputs

    def decode(
        self,
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        logit_rows: RowIndices = NO_ROWS,
        with_queries: bool = False,
    ) -> Candidates:
        """Run one step: a greedy one that returns tokens only, or one with candidates and scores."""
        cache = self._cache
        cache.flush()
        ahead, self._ahead = self._ahead, None
        is_steady = cache.num_changes == self._changes_seen
        self._changes_seen = cache.num_changes
        if num_candidates > 1 or with_scores or logit_rows.size or with_queries:
            return self._rank(num_rows, num_candidates, logit_rows, with_queries)
        if ahead is None or not self._is_valid(ahead, num_rows):
            self._upload_state(num_rows)
            ahead = self._start_greedy(num_rows, cache.state_side)
        # Running ahead is worth a step only if the same rows are likely to continue.
        following = self._start_greedy(num_rows, 1 - ahead.side) if self._runs_ahead and is_steady else None
        cache.count_step()
        self._memory.wait(ahead.mark)
        tokens = self._buffers.tokens_on_host[ahead.side][:num_rows].copy()
        if following is not None:
            following.tokens = tokens
            # As the device computes them, see export/graphs/parts_layout.py.
            following.past_lengths = np.minimum(ahead.past_lengths[:num_rows] + 1, cache.shapes.max_target_tokens - 1)
            self._ahead = following
        cache.past_lengths[:num_rows] += 1
        nothing = np.full(num_rows, np.nan, np.float32)
        no_logits = np.empty((0, self._buffers.vocab_size), np.float32)
        return Candidates(tokens[:, None].astype(np.int64), nothing[:, None], nothing, no_logits)

    def _is_valid(self, ahead: _Step, num_rows: int) -> bool:
        """Whether a step that ran ahead has read the present state. It may have had more rows."""
        cache = self._cache
        return (
            ahead.num_changes == cache.num_changes
            and num_rows <= ahead.num_rows
            and np.array_equal(ahead.tokens[:num_rows], cache.previous_tokens[:num_rows])
            and np.array_equal(ahead.past_lengths[:num_rows], cache.past_lengths[:num_rows])
        )

    def _start_greedy(self, num_rows: int, side: int) -> _Step:
        """Enqueue a greedy step that reads tokens and lengths at this side and writes them to the other."""
        step = self._step(num_rows, side)
        graph = self._captures.graph_id((step.num_rows, side))
        step.decode(graph)
        step.choose(graph)
        self._buffers.download_tokens(side, step.num_rows)
        cache = self._cache
        tokens, lengths = cache.previous_tokens[:num_rows].copy(), cache.past_lengths[:num_rows].copy()
        return _Step(num_rows, side, cache.num_changes, self._memory.mark(), tokens, lengths)

    def _rank(self, num_rows: int, num_candidates: int, logit_rows: RowIndices, with_queries: bool) -> Candidates:
        self._upload_state(num_rows)
        side, buffers = self._cache.state_side, self._buffers
        step = self._step(num_rows, side)
        graph = self._captures.graph_id((step.num_rows, side))
        step.decode(graph)
        step.rank(graph)
        self._cache.count_step()
        buffers.download_candidates(step.num_rows)
        logits = buffers.download_logits(logit_rows)
        queries = buffers.download_queries(num_rows) if with_queries else ()
        self._memory.wait(self._memory.mark())
        normalizer = buffers.normalizer[:num_rows]
        num_candidates = min(num_candidates, buffers.num_ranked)
        check_finite(buffers.candidate_logits[:num_rows])
        self._cache.past_lengths[:num_rows] += 1
        return Candidates(
            buffers.candidates[:num_rows, :num_candidates],
            buffers.candidate_logits[:num_rows, :num_candidates] - normalizer[:, None],
            normalizer,
            logits[:, : buffers.vocab_size].astype(np.float32),
            tuple(queries),
        )

    def _upload_state(self, num_rows: int) -> None:
        """Write the state of all rows. Free rows up to the size of the bucket get a harmless one."""
        cache = self._cache
        spare = slice(num_rows, bucket(num_rows, cache.max_rows))
        cache.previous_tokens[spare] = self.start_token
        cache.past_lengths[spare] = 0
        cache.source_lengths[spare] = 1
        self._buffers.upload_state(cache.per_row, cache.state_side)

    def _step(self, num_rows: int, side: int) -> BoundStep:
        size = bucket(num_rows, self._cache.max_rows)
        step = self._steps.get((size, side))
        if step is None:
            step = self._steps[size, side] = BoundStep(self._sessions, self._buffers, self._cache, size, side)
        return step
