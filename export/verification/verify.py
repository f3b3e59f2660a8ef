"""Verification of a bundle: every output of ONNX Runtime is compared with PyTorch.

The reference is the model, not the modules that the graphs were exported from, so that errors in those are found too.
Rows of different lengths run together, and several steps update the caches in place.

The error of int8 depends on the model: a few percent if it is trained, up to half if its weights are random and large.
So an int8 output is judged by a model that only rounds (export.verification.int8_reference, differences).
"""

from collections.abc import Callable, Sequence

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from bundle import tensors as names
from bundle.loading import Bundle
from bundle.manifest import Shapes
from bundle.tensors import Precision
from export.verification.differences import Difference, Verdict, difference
from export.verification.graph_runs import Arrays, VerificationError, open_graphs
from export.verification.references import LOG_NORMALIZER, LOGITS, Expected, References, Sentences
from kernels.onnx_registration import ONNX_RUNTIME, register, running_kernels
from model.config import TransformerConfig
from model.transformer import EncoderModel, Transformer

_MAX_LISTED = 10
# Models that only round, for a graph that looks wrong: in int8 more than the first one, and again.
_OTHER_ROUNDED_MODELS: dict[Precision, tuple[int, ...]] = {"int8": (5, 10), "float32": (1,), "float16": ()}
NUM_STEPS = 4
NUM_ROWS = 5
LOGIT_ROWS = ((), (3, 0))  # whole rows in every second step; usually none are requested


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
        # A graph's heads can be wider than the model's, see export.graphs.attention.
        found = found[..., : expected.values.shape[-1]]
        self.differences.append(difference(output, found, expected.values, self._precision, expected.rounded))
