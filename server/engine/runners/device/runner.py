"""`ModelRunner` on a device: caches, logits and the choice of tokens stay there, token ids come to the host.

A step is the decoder's graph and then the one that chooses, over as many rows as the next power of two, each number of
rows with bindings and CUDA graphs of its own. Rows beyond those that live are free ones, which may be written.

A greedy step is started before the host asks for it: the device has chosen the tokens that the host is about to read,
so the next step needs nothing of the host as long as the same rows go on with them. While the host does its part of a
step, the device computes the next one. Where rows have changed meanwhile, that step is done again: it reads what it
read and writes what it wrote, at the same places.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bundle import tensors as names
from server.engine.kv_cache import CacheShapes, CrossKeysValues, KVCache, RowIndices
from server.engine.model_runner import NO_ROWS, Candidates
from server.engine.runners.device.bound_steps import BoundStep, StepBuffers
from server.engine.runners.device.buckets import Captures, bucket
from server.engine.runners.device.cache import DeviceCache, EncodedRow
from server.engine.runners.device.row_mover import Mover
from server.engine.runners.device.sessions import DeviceSessions, run_options
from server.engine.runners.encoder_runs import encoded_in_runs
from server.interface.request import TokenIds

_DTYPES: dict[names.Precision, type[np.floating]] = {"float32": np.float32, "float16": np.float16}


@dataclass(slots=True)
class _Step:
    """A greedy step in the queue: what it takes for granted, and where and when its tokens come to the host."""

    num_rows: int
    side: int
    num_changes: int
    mark: int
    tokens: NDArray[np.int32]  # that it begins with
    past_lengths: NDArray[np.int32]


class DeviceRunner:
    """One engine's runner. `encode` and `decode` are called by one thread at a time."""

    def __init__(
        self,
        sessions: DeviceSessions,
        max_rows: int,
        max_encoder_tokens: int,
        *,
        captures: bool = True,
        runs_ahead: bool = True,
    ) -> None:
        """Without `captures` there are no CUDA graphs; without `runs_ahead` every step waits for the host."""
        self._sessions, self._memory = sessions, sessions.memory
        config = sessions.bundle.config
        shapes, special = config.shapes, config.special_tokens
        self.start_token = special.decoder_start
        self.attention_scale = config.attention_scale
        self._max_encoder_tokens = max_encoder_tokens
        self._dtype = _DTYPES[config.precision]
        graph_ids = sessions.graph_ids if captures and self._memory.queue is not None else None
        self._mover = Mover(sessions, graph_ids)
        self._cache = DeviceCache(
            CacheShapes(
                num_layers=shapes.num_decoder_layers,
                num_heads=shapes.num_heads,
                head_dim=shapes.head_dim,
                max_source_tokens=shapes.max_source_tokens,
                max_target_tokens=shapes.max_target_tokens,
            ),
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

    def encode(self, sources: Sequence[TokenIds]) -> list[CrossKeysValues]:
        """Encode sentences of similar length together, at most `max_encoder_tokens` padded tokens a run."""
        return encoded_in_runs(sources, self._max_encoder_tokens, self._encode_run)

    def _encode_run(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> list[CrossKeysValues]:
        rows, width = tokens.shape
        shapes = self._cache.shapes
        whole = (2 * shapes.num_layers, rows, shapes.num_heads, width, shapes.head_dim)
        num_bytes = int(np.prod(whole)) * np.dtype(self._dtype).itemsize
        planes = self._mover.planes(rows, width, self._mover.pool.lend(num_bytes))
        binding, device = self._sessions.encoder.io_binding(), self._memory.ort_name
        inputs = []  # held until the run is in the queue
        for name, array in ((names.SOURCE_TOKENS, tokens), (names.SOURCE_LENGTHS, lengths)):
            block = self._mover.pool.lend(array.nbytes)
            self._memory.upload(block.address, array)
            binding.bind_input(name, device, 0, np.int32, array.shape, block.address)
            inputs.append(block)
        binding.bind_cpu_input(names.SOURCE_WIDTH, np.array(width, np.int32))
        binding.bind_output(names.CROSS_KEYS_VALUES, device, 0, self._dtype, whole, planes.block.address)
        self._sessions.encoder.run_with_iobinding(binding, run_options())
        return [EncodedRow(planes, place, length) for place, length in enumerate(lengths.tolist())]

    def decode(
        self,
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        logit_rows: RowIndices = NO_ROWS,
        with_queries: bool = False,
    ) -> Candidates:
        """One step: a greedy one that nobody wants more of than its tokens, or one with candidates and scores."""
        cache = self._cache
        cache.flush()
        ahead, self._ahead = self._ahead, None
        is_steady = cache.num_changes == self._changes_seen
        self._changes_seen = cache.num_changes
        if num_candidates > 1 or with_scores or logit_rows.size or with_queries:
            return self._rank(num_rows, num_candidates, logit_rows, with_queries)
        if ahead is None or not self._is_what_was_wanted(ahead, num_rows):
            self._upload_state(num_rows)
            ahead = self._start_greedy(num_rows, 0)
        # A guess is worth a step only where the same rows are likely to go on.
        following = self._start_greedy(num_rows, 1 - ahead.side) if self._runs_ahead and is_steady else None
        self._memory.wait(ahead.mark)
        tokens = self._buffers.tokens_on_host[ahead.side][:num_rows].copy()
        if following is not None:
            following.tokens = tokens
            # What the device itself has made of them, see export.part_graphs.
            following.past_lengths = np.minimum(ahead.past_lengths[:num_rows] + 1, cache.shapes.max_target_tokens - 1)
            self._ahead = following
        nothing = np.full(num_rows, np.nan, np.float32)
        no_logits = np.empty((0, self._buffers.vocab_size), np.float32)
        return Candidates(tokens[:, None].astype(np.int64), nothing[:, None], nothing, no_logits)

    def _is_what_was_wanted(self, ahead: _Step, num_rows: int) -> bool:
        """Whether a step that ran ahead has read what is there to be read now. It may have had more rows."""
        cache = self._cache
        return (
            ahead.num_changes == cache.num_changes
            and num_rows <= ahead.num_rows
            and np.array_equal(ahead.tokens[:num_rows], cache.previous_tokens[:num_rows])
            and np.array_equal(ahead.past_lengths[:num_rows], cache.past_lengths[:num_rows])
        )

    def _start_greedy(self, num_rows: int, side: int) -> _Step:
        """Put a greedy step into the queue that reads tokens and lengths at this side and leaves them at the other."""
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
        step, buffers = self._step(num_rows, 0), self._buffers
        graph = self._captures.graph_id((step.num_rows, 0))
        step.decode(graph)
        step.rank(graph)
        buffers.download_candidates(step.num_rows)
        logits = buffers.download_logits(logit_rows)
        queries = buffers.download_queries(num_rows) if with_queries else ()
        self._memory.wait(self._memory.mark())
        normalizer = buffers.normalizer[:num_rows]
        num_candidates = min(num_candidates, buffers.num_ranked)
        return Candidates(
            buffers.candidates[:num_rows, :num_candidates],
            buffers.candidate_logits[:num_rows, :num_candidates] - normalizer[:, None],
            normalizer,
            logits[:, : buffers.vocab_size].astype(np.float32),
            tuple(queries),
        )

    def _upload_state(self, num_rows: int) -> None:
        """What the rows begin the step with; those up to the bucket's size are free, and must only do no harm."""
        cache = self._cache
        spare = slice(num_rows, bucket(num_rows, cache.max_rows))
        cache.previous_tokens[spare] = self.start_token
        cache.past_lengths[spare] = 0
        cache.source_lengths[spare] = 1
        self._buffers.upload_state(cache.per_row)

    def _step(self, num_rows: int, side: int) -> BoundStep:
        size = bucket(num_rows, self._cache.max_rows)
        step = self._steps.get((size, side))
        if step is None:
            step = self._steps[size, side] = BoundStep(self._sessions, self._buffers, self._cache, size, side)
        return step
