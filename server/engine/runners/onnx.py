"""`ModelRunner` over ONNX Runtime on the CPU."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bundle import tensors as names
from bundle.loading import Bundle, check_graph
from bundle.manifest import BundleError
from bundle.tensors import Precision
from kernels.candidates import StepCandidates
from kernels.onnx_registration import ONNX_RUNTIME, KernelsUnavailable, register, running_kernels
from server.engine.kv_cache import NO_LIST, CacheShapes, CrossKeysValues, KVCache, RowIndices
from server.engine.model_runner import NO_ROWS, Candidates, check_finite
from server.engine.runners.encoder_runs import embedded_in_runs, encoded_in_runs
from server.engine.shortlist import ListedTokens, TokenLists
from server.interface.request import Pooling, TokenIds

PROVIDER = "CPUExecutionProvider"

_CACHE_DTYPES: dict[Precision, type[np.number]] = {"float32": np.float32, "float16": np.float16, "int8": np.int8}

# Bindings that a runner keeps, of 32 kB each: unusual mixes of options must not grow their number without bound. One
# that must be made again takes 0.4 to 0.9 ms of processor time; a step takes 0.4 to 5 ms.
_MAX_BOUND_STEPS = 512
_PREFILLED_MULTIPLE = 4


@dataclass(frozen=True, slots=True)
class OnnxSessions:
    """Sessions of the graphs of a bundle. Several threads may run them at the same time."""

    bundle: Bundle
    listed_tokens: ListedTokens | None
    encoder: ort.InferenceSession
    decoder: ort.InferenceSession | None

    @classmethod
    def open(cls, bundle: Bundle, threads: int) -> "OnnxSessions":
        """Load the graphs with `threads` threads a run. Raises `BundleError` if a file cannot be loaded."""
        encoder = _open_session(bundle, names.ENCODER_FILE, threads)
        has_decoder = bundle.config.has_decoder
        listed = ListedTokens.open(bundle) if bundle.config.has_shortlist else None
        return cls(bundle, listed, encoder, _open_session(bundle, names.DECODER_FILE, threads) if has_decoder else None)


def _open_session(bundle: Bundle, file: str, threads: int) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # A thread that spins between steps takes the core from another replica.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0" if threads == 1 else "1")
    try:
        register(options)
        # ONNX Runtime's fused SkipLayerNormalization is several times slower on the CPU than Add + LayerNormalization.
        session = ort.InferenceSession(
            bundle.file(file), options, providers=[PROVIDER], disabled_optimizers=["SkipLayerNormFusion"]
        )
    except KernelsUnavailable as error:
        raise BundleError(str(error)) from error
    except Exception as error:  # ONNX Runtime raises a dozen unrelated classes here
        raise BundleError(f"{bundle.file(file)}: ONNX Runtime cannot load this graph: {error}") from error
    check_graph(bundle, file, session.get_modelmeta().custom_metadata_map)
    return session


class OnnxRunner:
    """Runner of one replica: its own cache and bindings, over sessions that replicas share."""

    def __init__(self, sessions: OnnxSessions, max_rows: int, max_encoder_tokens: int) -> None:
        self._sessions = sessions
        shapes = sessions.bundle.config.shapes
        self._num_layers = shapes.num_decoder_layers
        self.start_token = sessions.bundle.config.special_tokens.decoder_start
        self.has_decoder = sessions.decoder is not None
        self.attention_scale = sessions.bundle.config.attention_scale
        self._max_encoder_tokens = max_encoder_tokens
        self.cache = KVCache(
            CacheShapes.of(shapes),
            max_rows,
            _CACHE_DTYPES[sessions.bundle.config.precision],
            # Only int8 graphs have operators of the library.
            is_native=sessions.bundle.config.precision == "int8" and running_kernels() != ONNX_RUNTIME,
        )
        listed = sessions.listed_tokens
        self.token_lists = None if listed is None else TokenLists(listed, shapes.target_vocab_size, self.cache)
        special = sessions.bundle.config.special_tokens
        # The graph has no more tokens that are possible.
        self._max_candidates = shapes.target_vocab_size - len(special.suppressed)
        self._steps: dict[tuple[bool, int, int, bool, int, bool], _BoundStep] = {}
        self._logit_rows = np.zeros(max_rows, np.int64)
        # One buffer for all steps, of megabytes with a large vocabulary; untouched until logits are requested.
        self._logits = np.empty((max_rows, shapes.target_vocab_size), np.float32)
        self._queries = np.empty((self._num_layers, *self.cache.last_cross.shape[1:]), self.cache.last_cross.dtype)
        self._rows = _GraphRows.of(self.cache)
        self._sequence = _GraphRows.of_sequence(self.cache)
        # Attention of ONNX Runtime reads one cache for each row, and a recurrent state needs the one before.
        self.prefill = self._prefill if self.cache.sources.is_shared and not self.cache.shapes.state_width else None

    def encode(self, sources: Sequence[TokenIds]) -> list[CrossKeysValues]:
        """Encode sentences of similar length together, at most `max_encoder_tokens` padded tokens a run."""
        return encoded_in_runs(sources, self._max_encoder_tokens, self._encode_run)

    def _encode_run(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> list[CrossKeysValues]:
        (cross,) = self._sessions.encoder.run(
            [names.CROSS_KEYS_VALUES], {names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: lengths}
        )
        return [cross[:, row, :, :length] for row, length in enumerate(lengths.tolist())]

    def embed(self, sources: Sequence[TokenIds], poolings: Sequence[Pooling]) -> list[NDArray[np.float32]]:
        """Embed sentences in encoder runs like those of `encode`."""
        end = self._sessions.bundle.config.special_tokens.end_of_sequence
        return embedded_in_runs(sources, poolings, self._max_encoder_tokens, self._hidden_run, end)

    def _hidden_run(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> list[NDArray[np.float32]]:
        (hidden,) = self._sessions.encoder.run(
            [names.HIDDEN_STATES], {names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: lengths}
        )
        return [hidden[row, :length] for row, length in enumerate(lengths.tolist())]

    def decode(
        self,
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        logit_rows: RowIndices = NO_ROWS,
        with_queries: bool = False,
    ) -> Candidates:
        """Run one decoder step, through a binding kept for each combination of sizes and requested outputs.

        The number of `logit_rows` is rounded up to a power of two, so that there are few bindings.
        """
        num_candidates = min(num_candidates, self._max_candidates)
        return self._step(self._rows, num_rows, num_candidates, with_scores, logit_rows, with_queries)

    def _prefill(self, row: int, tokens: NDArray[np.int32], with_logits: bool, with_queries: bool) -> Candidates:
        """Run one decoder step whose rows are the tokens. The step's rows share a cache, copied from and to the row's.

        The number of rows is rounded up, so that there are few bindings; what the additional ones append is not kept.
        """
        cache, sequence, num_tokens = self.cache, self._sequence, len(tokens)
        past = int(cache.past_lengths[row])
        num_rows = -(-num_tokens // _PREFILLED_MULTIPLE) * _PREFILLED_MULTIPLE
        num_rows = min(num_rows, cache.max_rows, cache.shapes.max_target_tokens - past)
        sequence.previous_tokens[:num_tokens] = tokens
        sequence.past_lengths[:num_rows] = np.arange(past, past + num_rows)
        sequence.places[:num_rows] = cache.sources.places_of(row, num_rows)
        sequence.own_cache[:, 0, :, :past] = cache.self_cache[:, row, :, :past]
        logit_rows = np.arange(num_tokens) if with_logits else NO_ROWS
        found = self._step(sequence, num_rows, int(with_logits), with_logits, logit_rows, with_queries)
        end = past + num_tokens
        cache.self_cache[:, row, :, past:end] = sequence.own_cache[:, 0, :, past:end]
        cache.past_lengths[row] = end
        return found

    def _step(
        self,
        rows: "_GraphRows",
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        logit_rows: RowIndices,
        with_queries: bool,
    ) -> Candidates:
        num_logit_rows = logit_rows.size
        num_bound = min(1 << (num_logit_rows - 1).bit_length(), self.cache.max_rows) if num_logit_rows else 0
        key = (rows is self._rows, num_rows, num_candidates, with_scores, num_bound, with_queries)
        step = self._steps.pop(key, None)
        if step is None:
            if len(self._steps) == _MAX_BOUND_STEPS:
                del self._steps[next(iter(self._steps))]
            queries = tuple(self._queries[:, :num_rows]) if with_queries else ()
            whole_rows = _WholeRows(self._logit_rows[:num_bound], self._logits[:num_bound], queries)
            assert self._sessions.decoder is not None, "a request for an encoder has no decoder steps"
            step = _BoundStep(self._sessions.decoder, self.cache, self.token_lists, rows, *key[1:4], whole_rows)
        self._steps[key] = step  # at the end: the first was not used for longest
        if num_logit_rows:
            self._logit_rows[:num_logit_rows] = logit_rows
            self._logit_rows[num_logit_rows:num_bound] = 0
        return step.run(num_logit_rows)


@dataclass(frozen=True, slots=True)
class _GraphRows:
    """What the graph reads of its rows [max_rows], and the cache of their keys and values.

    `own_cache` [2 * layers, rows, heads, max_target_tokens, head_dim] has one row if the rows are a sequence.
    """

    previous_tokens: NDArray[np.int32]
    past_lengths: NDArray[np.int32]
    places: NDArray[np.int32]
    list_of_row: NDArray[np.int32]
    own_cache: NDArray[np.number]

    @classmethod
    def of(cls, cache: KVCache) -> "_GraphRows":
        """Return the rows of a cache."""
        return cls(cache.previous_tokens, cache.past_lengths, cache.sources.places, cache.list_of_row, cache.self_cache)

    @classmethod
    def of_sequence(cls, cache: KVCache) -> "_GraphRows":
        """Return rows for consecutive tokens of one sequence, which may have all tokens."""
        tokens, lengths, places = np.zeros((3, cache.max_rows), np.int32)
        return cls(tokens, lengths, places, np.full(cache.max_rows, NO_LIST, np.int32), cache.single_row())


@dataclass(frozen=True, slots=True)
class _WholeRows:
    """Buffers for rows with logits: their indices and their logits; and for the requested queries of each layer."""

    rows: NDArray[np.int64]
    logits: NDArray[np.float32]
    queries: tuple[NDArray[np.floating], ...]


class _BoundStep:
    """The decoder graph bound to the first rows of a cache. A run allocates and binds nothing."""

    def __init__(
        self,
        session: ort.InferenceSession,
        cache: KVCache,
        token_lists: TokenLists | None,
        rows: _GraphRows,
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        whole_rows: _WholeRows,
    ) -> None:
        self._session = session
        self._binding = session.io_binding()
        self._logits = np.empty((num_rows, num_candidates), np.float32)
        self._tokens = np.empty((num_rows, num_candidates), np.int64)
        self._log_normalizer = np.empty(num_rows, np.float32)
        self._ranked = StepCandidates(
            self._logits, self._log_normalizer, rows.past_lengths[:num_rows], with_scores=with_scores
        )
        log_probs = self._ranked.log_probs
        addresses = self._tokens.ctypes.data, log_probs.ctypes.data
        self._whole_rows = whole_rows
        self._candidates = Candidates(
            self._tokens, log_probs, self._log_normalizer, whole_rows.logits[:0], (), addresses
        )
        self._keep_alive: list[ort.OrtValue] = []
        self._bind_input(names.PREVIOUS_TOKENS, rows.previous_tokens[:num_rows])
        self._bind_input(names.PAST_LENGTHS, rows.past_lengths[:num_rows])
        self._bind_input(names.SOURCE_LENGTHS, rows.places[:num_rows])
        self._bind_input(names.NUM_CANDIDATES, np.array([num_candidates], np.int64))
        self._bind_input(names.WITH_SCORES, np.array([with_scores]))
        self._bind_input(names.LOGIT_ROWS, whole_rows.rows)
        if token_lists is not None:
            self._bind_input(names.LISTS, token_lists.lists)
            self._bind_input(names.LIST_LENGTHS, token_lists.lengths)
            self._bind_input(names.LIST_OF_ROW, rows.list_of_row[:num_rows])
        recurrent = cache.shapes.state_width > 0
        # Rows that share sources read them anywhere in the cache.
        num_sources = cache.max_rows if cache.sources.is_shared else num_rows
        for layer in range(cache.shapes.num_layers):
            key, value = 2 * layer, 2 * layer + 1
            planes: list[NDArray[np.number]] = [cache.states[layer, :num_rows]] if recurrent else []
            if not recurrent:
                num_caches = min(num_rows, rows.own_cache.shape[1])
                planes += [cache.declared(rows.own_cache, plane, num_caches) for plane in (key, value)]
            planes += [cache.declared(cache.cross_cache, plane, num_sources) for plane in (key, value)]
            for name, memory in zip(names.cache_names(layer, recurrent=recurrent), planes, strict=True):
                value_in_place = self._bind_input(name, memory)
                self._binding.bind_ortvalue_output(names.PRESENT + name, value_in_place)
            self._bind_input(names.LAST_CROSS_KEY.format(layer=layer), cache.last_cross[key, :num_rows])
            self._bind_input(names.LAST_CROSS_VALUE.format(layer=layer), cache.last_cross[value, :num_rows])
        self._bind_output(names.CANDIDATE_LOGITS, self._logits)
        self._bind_output(names.CANDIDATE_TOKENS, self._tokens)
        self._bind_output(names.LOG_NORMALIZER, self._log_normalizer)
        for layer, queries in enumerate(whole_rows.queries):
            self._bind_output(names.CROSS_QUERIES.format(layer=layer), queries)
        if whole_rows.rows.size:
            self._bind_output(names.LOGITS, whole_rows.logits)

    def _bind_input(self, name: str, array: NDArray[np.generic]) -> ort.OrtValue:
        value = ort.OrtValue.ortvalue_from_numpy(array)  # shares the memory of a contiguous array
        self._binding.bind_ortvalue_input(name, value)
        self._keep_alive.append(value)
        return value

    def _bind_output(self, name: str, array: NDArray[np.generic]) -> None:
        value = ort.OrtValue.ortvalue_from_numpy(array)
        self._binding.bind_ortvalue_output(name, value)
        self._keep_alive.append(value)

    def run(self, num_logit_rows: int) -> Candidates:
        self._session.run_with_iobinding(self._binding)
        if self._ranked.update():
            check_finite(self._logits)  # raises the error
        if not num_logit_rows and not self._whole_rows.queries:
            return self._candidates
        return replace(
            self._candidates,
            logits=self._whole_rows.logits[:num_logit_rows],
            cross_queries=tuple(queries[:, 0] for queries in self._whole_rows.queries),
        )
