"""Runs of a bundle's graphs for a comparison, with the same outputs and names for both layouts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bundle import tensors as names
from bundle.loading import Bundle
from bundle.manifest import BundleError, Shapes
from bundle.tensors import Precision
from export.verification.differences import Difference, Verdict, difference
from export.verification.references import LOG_NORMALIZER, LOGITS, Expected, References, Sentences
from kernels.layout import from_native, to_native
from kernels.onnx_registration import ONNX_RUNTIME, register, running_kernels
from model.config import TransformerConfig
from model.transformer import EncoderModel, Transformer

Arrays = dict[str, NDArray[Any]]
"""Results of ONNX Runtime by name; the graphs define their types."""

_RANKED = (names.STEP_LOGITS, names.CANDIDATE_TOKENS, names.SUPPRESSED_LOGITS)
_MAX_LISTED = 10
# Models that only round, for a graph that looks wrong: in int8 more than the first one, and again.
_OTHER_ROUNDED_MODELS: dict[Precision, tuple[int, ...]] = {"int8": (5, 10), "float32": (1,), "float16": ()}
NUM_STEPS = 4
NUM_ROWS = 5
LOGIT_ROWS = ((), (3, 0))  # whole rows in every second step; usually none are requested


class VerificationError(BundleError):
    """An exported graph whose outputs differ from the model's."""


class Graphs(Protocol):
    """Runs of a bundle's graphs with arrays by tensor name."""

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> Arrays:
        """Return the outputs of the encoder."""
        ...

    def step(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        """Run one decoder step, with inputs and outputs named as in layout `step`."""
        ...


def open_graphs(bundle: Bundle, options: ort.SessionOptions, *, is_native: bool) -> Graphs:
    """Open the graphs on the CPU. `is_native`: the native operators are registered."""
    if bundle.config.layout == "parts":
        return _Parts(bundle, options)
    return _OneStep(bundle, options, is_native=is_native)


class _OneStep:
    def __init__(self, bundle: Bundle, options: ort.SessionOptions, *, is_native: bool) -> None:
        self._is_native = is_native
        files = names.GRAPH_FILES if bundle.config.has_decoder else (names.ENCODER_FILE,)
        self._encoder, *self._decoder = (
            ort.InferenceSession(bundle.file(file), options, providers=["CPUExecutionProvider"]) for file in files
        )
        self._encoder_outputs = bundle.config.encoder_outputs
        shapes = bundle.config.shapes
        self._outputs = names.decoder_output_names(shapes.num_decoder_layers, recurrent=shapes.is_recurrent)
        self._has_shortlist = bundle.config.has_shortlist

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> Arrays:
        inputs = {names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: lengths}
        return dict(zip(self._encoder_outputs, self._encoder.run(self._encoder_outputs, inputs), strict=True))

    def step(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        (decoder,) = self._decoder
        given = dict(inputs)
        if self._has_shortlist:  # all tokens of every row are compared
            every_row = np.full(len(inputs[names.PAST_LENGTHS]), -1, np.int32)
            unused = np.zeros((1, 1), np.int32), np.ones(1, np.int32)
            given |= dict(zip(names.LIST_INPUTS, (*unused, every_row), strict=True))
        if not self._is_native:
            return dict(zip(self._outputs, decoder.run(self._outputs, given), strict=True))
        given = {name: to_native(array) if _is_int8_cache(array) else array for name, array in given.items()}
        found = dict(zip(self._outputs, decoder.run(self._outputs, given), strict=True))
        return {name: from_native(array) if _is_int8_cache(array) else array for name, array in found.items()}


def _is_int8_cache(array: NDArray[Any]) -> bool:
    """Whether an input or output of a decoder contains keys or values that the native operators read."""
    return bool(array.dtype == np.int8)


class _Parts:
    def __init__(self, bundle: Bundle, options: ort.SessionOptions) -> None:
        self._config = bundle.config
        self._encoder, self._decoder, self._choose, self._rank = (
            ort.InferenceSession(bundle.file(file), options, providers=["CPUExecutionProvider"])
            for file in (names.ENCODER_FILE, names.DECODER_FILE, names.CHOOSE_FILE, names.RANK_FILE)
        )

    def encode(self, tokens: NDArray[np.int32], lengths: NDArray[np.int32]) -> Arrays:
        width = np.array(tokens.shape[1], np.int32)
        inputs = {names.SOURCE_TOKENS: tokens, names.SOURCE_LENGTHS: lengths, names.SOURCE_WIDTH: width}
        outputs = self._config.encoder_outputs
        return dict(zip(outputs, self._encoder.run(outputs, inputs), strict=True))

    def step(self, inputs: Mapping[str, NDArray[Any]]) -> Arrays:
        """Rank all tokens, and compare the candidates of the graphs with them."""
        given = {name: inputs[name] for name in self._config.decoder_inputs}
        outputs = self._config.decoder_outputs
        found: Arrays = dict(zip(outputs, self._decoder.run(outputs, given), strict=True))
        tokens = found[names.CANDIDATE_TOKENS]
        ranked = {name: found[name] for name in _RANKED if name in found}
        (normalizer,) = self._rank.run(None, ranked)
        chosen, _ = self._choose.run(
            (names.NEXT_TOKENS, names.NEXT_LENGTHS),
            {names.CANDIDATE_TOKENS: tokens, names.PAST_LENGTHS: inputs[names.PAST_LENGTHS]},
        )
        logits = found[names.STEP_LOGITS][:, : self._config.shapes.target_vocab_size].astype(np.float32)
        best_first = np.argsort(-logits, axis=1, kind="stable")[:, : int(inputs[names.NUM_CANDIDATES][0])]
        sorted_logits = np.take_along_axis(logits, best_first, axis=1)
        # Both are rounded, one more than the other; tokens with almost equal logits can be in any order.
        rounding = 2e-3 * np.abs(sorted_logits).max()
        if not (
            np.allclose(found[names.CANDIDATE_LOGITS], sorted_logits[:, : tokens.shape[1]], 0, rounding)
            and np.allclose(found[names.CANDIDATE_LOGITS], np.take_along_axis(logits, tokens, axis=1), 0, rounding)
            and np.array_equal(chosen, tokens[:, 0])
        ):
            raise VerificationError(f"{self._config.name}: the decoder or {names.CHOOSE_FILE} returns wrong tokens")
        return found | {
            names.CANDIDATE_TOKENS: best_first,
            names.CANDIDATE_LOGITS: sorted_logits,
            names.LOG_NORMALIZER: normalizer,
            names.LOGITS: logits[inputs[names.LOGIT_ROWS]],
        }


def verify_bundle(
    bundle: Bundle,
    transformer: Transformer | EncoderModel,
    report: Callable[[str], None] = lambda _: None,
    rescaled: Transformer | None = None,
) -> list[Difference]:
    """Compare every output of both graphs with the model's, without and with native operators.

    Returns the differences; `report` receives a warning if int8 is inaccurate for this model. `rescaled` is the model
    with unit keys and values; its keys and values are compared, and the logits of `transformer`. Raises
    `VerificationError` with the outputs that a correct graph cannot have.
    """
    sentences = _random_sentences(bundle.config.shapes, transformer.config)
    references = References(transformer, bundle.config.precision, sentences, rescaled)
    differences, wrong = _compare(bundle, sentences, references)
    for num_others in _OTHER_ROUNDED_MODELS[bundle.config.precision]:
        if not wrong:
            break
        for _ in range(num_others):
            references.add_rounded_model()
        differences, wrong = _compare(bundle, sentences, references)
    is_float32 = bundle.config.precision == "float32"
    if wrong:
        remedy = "" if is_float32 else ", or with --precision float32,"
        raise VerificationError(
            f"{bundle.config.name}: {len(wrong)} of {len(differences)} outputs of ONNX Runtime differ from PyTorch "
            f"more than rounding does (relative difference, usual limit in brackets): {_listed(wrong)}. The graph is "
            f"wrong; export with the versions of constraints.txt{remedy} and report it"
        )
    if unlucky := [each for each in differences if each.verdict is Verdict.UNLUCKY]:
        other = "PyTorch" if is_float32 else "--precision float32"
        report(
            f"warning: rounding to {bundle.config.precision} changes {len(unlucky)} of {len(differences)} outputs more "
            f"than usual (relative difference, usual limit in brackets): {_listed(unlucky)}. The bundle is written; "
            f"compare some translations with those of {other}"
        )
    return differences


def _compare(bundle: Bundle, sentences: Sentences, references: References) -> tuple[list[Difference], list[Difference]]:
    """Return all differences, and those that a correct graph cannot have."""
    differences = _Comparison(bundle, sentences, references, is_native=False).run()
    if bundle.config.precision == "int8" and running_kernels() != ONNX_RUNTIME:
        differences += _Comparison(bundle, sentences, references, is_native=True).run()
    return differences, [each for each in differences if each.verdict is Verdict.WRONG]


def _listed(differences: Sequence[Difference]) -> str:
    return "; ".join(map(str, differences[:_MAX_LISTED]))


def _random_sentences(shapes: Shapes, config: TransformerConfig) -> Sentences:
    random = np.random.default_rng(0)
    longest = min(13, shapes.max_source_tokens)
    lengths = random.integers(1, longest + 1, NUM_ROWS).astype(np.int32)
    lengths[0] = longest
    tokens = random.integers(0, shapes.vocab_size, (NUM_ROWS, longest)).astype(np.int32)
    if config.is_encoder_only:
        return Sentences(tokens, lengths, ())
    start = np.full(NUM_ROWS, config.decoder_start_token_id, np.int32)
    num_others = min(NUM_STEPS, shapes.max_target_tokens) - 1
    others = (random.integers(0, shapes.target_vocab_size, NUM_ROWS).astype(np.int32) for _ in range(num_others))
    return Sentences(tokens, lengths, (start, *others))


class _Comparison:
    def __init__(self, bundle: Bundle, sentences: Sentences, references: References, *, is_native: bool) -> None:
        self._sentences = sentences
        self._references = references
        self._precision = bundle.config.precision
        self._shapes = bundle.config.shapes
        self._suppressed = list(bundle.config.special_tokens.suppressed)
        self._cache_step = names.INT8_CACHE_STEP if self._precision == "int8" else 1.0
        self._dtype = {"float32": np.float32, "float16": np.float16, "int8": np.int8}[self._precision]
        # Positions that were not written must not be read.
        self._unwritten = 127 if self._precision == "int8" else np.nan
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False
        if is_native:
            register(options)
        elif self._precision == "int8" and running_kernels() != ONNX_RUNTIME:
            # Bundles run with native operators here. Of their bodies, ONNX Runtime would copy all weights to optimise.
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.add_session_config_entry("session.disable_prepacking", "1")
            options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
        self._graphs = open_graphs(bundle, options, is_native=is_native)
        self.differences: list[Difference] = []

    def run(self) -> list[Difference]:
        sentences, references = self._sentences, self._references
        encoded = self._graphs.encode(sentences.tokens, sentences.lengths)
        if names.HIDDEN_STATES in encoded:
            # Positions after a row's length are undefined.
            hidden = np.where(sentences.mask[:, :, None], encoded[names.HIDDEN_STATES], 0)
            self._compare(names.HIDDEN_STATES, hidden, references.hidden())
        if not sentences.previous:
            return self.differences
        cross = encoded[names.CROSS_KEYS_VALUES]
        is_token = sentences.mask[:, None, :, None]
        for plane, (name, values) in enumerate(references.cross().items()):
            self._compare(name, self._values(cross[plane]) * is_token, values)
        caches = self._empty_caches(cross, sentences.lengths)
        for step in range(len(sentences.previous)):
            self._step(step, caches)
        return self.differences

    def _empty_caches(self, cross: NDArray[np.floating], lengths: NDArray[np.int32]) -> dict[str, NDArray[np.floating]]:
        shapes = self._shapes
        caches = {}
        self_shape = (NUM_ROWS, shapes.num_heads, shapes.max_target_tokens, shapes.head_dim)
        cross_shape = (NUM_ROWS, shapes.num_heads, shapes.max_source_tokens, shapes.head_dim)
        for layer in range(shapes.num_decoder_layers):
            *own_names, cross_keys, cross_values = names.cache_names(layer, recurrent=shapes.is_recurrent)
            last_names = (names.LAST_CROSS_KEY.format(layer=layer), names.LAST_CROSS_VALUE.format(layer=layer))
            for name in own_names:
                caches[name] = (
                    np.full((NUM_ROWS, 1, shapes.state_width), np.nan, np.float32)
                    if shapes.is_recurrent
                    else np.full(self_shape, self._unwritten, self._dtype)
                )
            for kind, (name, last_name) in enumerate(zip((cross_keys, cross_values), last_names, strict=True)):
                plane = cross[2 * layer + kind]
                caches[name] = np.full(cross_shape, self._unwritten, self._dtype)
                for row, length in enumerate(lengths):
                    caches[name][row, :, :length] = plane[row, :, :length]
                last = plane[np.arange(NUM_ROWS), :, lengths - 1]
                last = np.ascontiguousarray(last.reshape(NUM_ROWS, 1, -1))
                caches[last_name] = self._values(last) if last.dtype == np.int8 else last
        return caches

    def _step(self, step: int, caches: dict[str, NDArray[np.floating]]) -> None:
        rows = np.array(LOGIT_ROWS[step % len(LOGIT_ROWS)], np.int64)
        num_candidates = self._shapes.target_vocab_size - len(self._suppressed)
        inputs: Arrays = {
            names.PREVIOUS_TOKENS: self._sentences.previous[step],
            names.PAST_LENGTHS: np.full(NUM_ROWS, step, np.int32),
            names.SOURCE_LENGTHS: self._sentences.lengths,
            names.NUM_CANDIDATES: np.array([num_candidates], np.int64),
            names.LOGIT_ROWS: rows,
            names.WITH_SCORES: np.array([True]),
        }
        found = self._graphs.step(inputs | caches)
        for name in caches:
            if names.PRESENT + name in found:
                caches[name] = found[names.PRESENT + name]
        expected = self._references.step(step)
        self._compare_logits(step, found, rows, expected[LOGITS])
        self._compare(f"log normalizer of step {step}", found[names.LOG_NORMALIZER], expected[LOG_NORMALIZER])
        for name, each in expected.items():
            if name in (LOGITS, LOG_NORMALIZER):
                continue
            if name in caches and self._shapes.is_recurrent:
                values = caches[name]
            elif name in caches:
                values = self._values(caches[name][:, :, : step + 1])
            else:  # queries
                num_heads, head_dim = self._shapes.num_heads, self._shapes.head_dim
                values = found[name].astype(np.float32).reshape(NUM_ROWS, num_heads, head_dim)
            self._compare(f"{name} of step {step}", values, each)

    def _compare_logits(self, step: int, found: Arrays, rows: NDArray[np.int64], expected: Expected) -> None:
        hidden = np.isneginf(expected.values)
        hidden[:, self._suppressed] = True
        # All tokens are candidates here, so all logits are compared, by token.
        logits = np.full(hidden.shape, -np.inf, np.float32)
        np.put_along_axis(logits, found[names.CANDIDATE_TOKENS], found[names.CANDIDATE_LOGITS], axis=1)
        visible = expected.changed(lambda values: np.where(hidden, 0, values))
        self._compare(f"logits of step {step}", np.where(hidden, 0, logits), visible)
        whole, hidden = found[names.LOGITS], hidden[rows]
        named = f"{names.LOGITS} of named rows of step {step}"
        self._compare(
            named, np.where(hidden & np.isneginf(whole), 0, whole), visible.changed(lambda values: values[rows])
        )

    def _values(self, cached: NDArray[np.generic]) -> NDArray[np.float32]:
        return cached.astype(np.float32) * np.float32(self._cache_step)

    def _compare(self, output: str, found: NDArray[np.floating], expected: Expected) -> None:
        # A graph's heads can be wider than the model's, see export.graphs.layers.
        found = found[..., : expected.values.shape[-1]]
        self.differences.append(difference(output, found, expected.values, self._precision, expected.rounded))
