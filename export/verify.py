"""PyTorch against ONNX Runtime, output by output, before a bundle is accepted.

The reference is the model itself (`Transformer.encode` and `decode`), not the modules the graphs were exported from, so
that a mistake in those shows too. Rows of different length run together, and several steps follow each other in place.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray

from export import bundle as names
from export.bundle import Bundle, Precision
from export.graph_runs import Arrays, VerificationError, open_graphs
from export.key_value_ranges import with_unit_keys_values
from kernels.library import ONNX_RUNTIME, register, running_kernels
from model.transformer import DecoderCache, Transformer

# Largest difference allowed, relative to the largest value of the output. float32 differs by the order of sums only;
# int8 by about one part in a hundred for each product, which adds up: the largest of a trained model was 0.29, a key of
# a channel that its rescaling to [-1, 1] had stretched. A wrong graph is off by 1 or more. float16 carries 11 bits.
TOLERANCE: dict[Precision, float] = {"float32": 1e-4, "float16": 2e-2, "int8": 4e-1}
NUM_STEPS = 4
NUM_ROWS = 5
LOGIT_ROWS = ((), (3, 0))  # in every second step; usually nobody wants whole rows


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one output of one step is from the reference, relative to the reference's largest value."""

    output: str
    relative: float


def verify_bundle(bundle: Bundle, transformer: Transformer) -> list[Difference]:
    """Compare every output of both graphs with the model's, without native operators and, if there are any, with them.

    Returns the differences found; raises `VerificationError` naming every output beyond the tolerance of the bundle's
    precision.
    """
    differences = _Comparison(bundle, transformer, is_native=False).run()
    if bundle.config.precision == "int8" and running_kernels() != ONNX_RUNTIME:
        differences += _Comparison(bundle, transformer, is_native=True).run()
    tolerance = TOLERANCE[bundle.config.precision]
    # NaN is a difference, too.
    beyond = [d for d in differences if not d.relative <= tolerance]
    if beyond:
        worst = "; ".join(f"{d.output}: {d.relative:.2g}" for d in beyond[:10])
        raise VerificationError(
            f"{bundle.config.name}: {len(beyond)} of {len(differences)} outputs of ONNX Runtime differ from PyTorch by "
            f"more than {tolerance:g} of their size: {worst}"
        )
    return differences


@contextmanager
def _cross_queries(transformer: Transformer) -> Iterator[list[torch.Tensor]]:
    """Collects, layer by layer, the queries of cross-attention [rows, 1, heads * head_dim] of what runs inside."""
    queries: list[torch.Tensor] = []
    hooks = [
        layer.cross_attention.query_proj.register_forward_hook(lambda _, __, output: queries.append(output))
        for layer in transformer.decoder.layers
    ]
    try:
        yield queries
    finally:
        for hook in hooks:
            hook.remove()


class _Comparison:
    def __init__(self, bundle: Bundle, transformer: Transformer, *, is_native: bool) -> None:
        self._transformer = transformer
        self._shapes = bundle.config.shapes
        self._suppressed = list(bundle.config.special_tokens.suppressed)
        precision = bundle.config.precision
        # Keys and values of an int8 bundle are those of an equal model whose channels have other scales.
        self._cached = with_unit_keys_values(transformer) if precision == "int8" else transformer
        self._cache_step = names.INT8_CACHE_STEP if precision == "int8" else 1.0
        self._dtype = {"float32": np.float32, "float16": np.float16, "int8": np.int8}[precision]
        # What was never written must not be read.
        self._unwritten = 127 if precision == "int8" else np.nan
        self._random = np.random.default_rng(0)
        options = ort.SessionOptions()
        options.log_severity_level = 3
        if is_native:
            register(options)
        self._graphs = open_graphs(bundle, options)
        self.differences: list[Difference] = []

    @torch.no_grad()
    def run(self) -> list[Difference]:
        shapes = self._shapes
        longest = min(13, shapes.max_source_tokens)
        lengths = self._random.integers(1, longest + 1, NUM_ROWS).astype(np.int32)
        lengths[0] = longest
        tokens = self._random.integers(0, shapes.vocab_size, (NUM_ROWS, longest)).astype(np.int32)
        mask = torch.arange(longest) < torch.from_numpy(lengths)[:, None]
        memory = self._transformer.encode(torch.from_numpy(tokens).long(), mask)
        reference = self._transformer.decoder.project_memory(memory)
        cached = self._cached.decoder.project_memory(memory)

        cross = self._graphs.encode(tokens, lengths)
        valid = mask.numpy()[:, None, :, None]
        for layer, keys_values in enumerate(cached):
            for kind, expected in enumerate(keys_values):
                found = self._values(cross[2 * layer + kind, ..., : expected.shape[-1]])
                self._compare(f"cross {('keys', 'values')[kind]} {layer}", found * valid, expected.numpy() * valid)

        caches = self._empty_caches(cross, lengths)
        past: DecoderCache | None = None
        cached_past: DecoderCache | None = None
        previous = np.full(NUM_ROWS, self._transformer.config.decoder_start_token_id, np.int32)
        for step in range(min(NUM_STEPS, shapes.max_target_tokens)):
            previous_tokens = torch.from_numpy(previous).long()[:, None]
            logits, past = self._transformer.decode(previous_tokens, reference, mask, past)
            with _cross_queries(self._cached) as queries:
                _, cached_past = self._cached.decode(previous_tokens, cached, mask, cached_past)
            self._step(step, previous, lengths, caches, logits[:, -1], queries)
            self._compare_caches(step, caches, cached_past)
            previous = self._random.integers(0, shapes.target_vocab_size, NUM_ROWS).astype(np.int32)
        return self.differences

    def _empty_caches(self, cross: NDArray[np.floating], lengths: NDArray[np.int32]) -> dict[str, NDArray[np.floating]]:
        shapes = self._shapes
        caches = {}
        self_shape = (NUM_ROWS, shapes.num_heads, shapes.max_target_tokens, shapes.head_dim)
        cross_shape = (NUM_ROWS, shapes.num_heads, shapes.max_source_tokens, shapes.head_dim)
        for layer in range(shapes.num_decoder_layers):
            self_keys, self_values, *cross_names = names.cache_names(layer)
            last_names = (names.LAST_CROSS_KEY.format(layer=layer), names.LAST_CROSS_VALUE.format(layer=layer))
            for name in (self_keys, self_values):
                caches[name] = np.full(self_shape, self._unwritten, self._dtype)
            for kind, (name, last_name) in enumerate(zip(cross_names, last_names, strict=True)):
                plane = cross[2 * layer + kind]
                caches[name] = np.full(cross_shape, self._unwritten, self._dtype)
                for row, length in enumerate(lengths):
                    caches[name][row, :, :length] = plane[row, :, :length]
                last = plane[np.arange(NUM_ROWS), :, lengths - 1]
                last = np.ascontiguousarray(last.reshape(NUM_ROWS, 1, -1))
                caches[last_name] = self._values(last) if last.dtype == np.int8 else last
        return caches

    def _step(
        self,
        step: int,
        previous: NDArray[np.int32],
        lengths: NDArray[np.int32],
        caches: dict[str, NDArray[np.floating]],
        expected: torch.Tensor,
        expected_queries: list[torch.Tensor],
    ) -> None:
        allowed = expected.clone()
        rows = np.array(LOGIT_ROWS[step % len(LOGIT_ROWS)], np.int64)
        allowed[:, self._suppressed] = -torch.inf
        num_candidates = self._shapes.target_vocab_size - len(self._suppressed)
        inputs: Arrays = {
            names.PREVIOUS_TOKENS: previous,
            names.PAST_LENGTHS: np.full(NUM_ROWS, step, np.int32),
            names.SOURCE_LENGTHS: lengths,
            names.NUM_CANDIDATES: np.array([num_candidates], np.int64),
            names.LOGIT_ROWS: rows,
            names.WITH_SCORES: np.array([True]),
        }
        found = self._graphs.step(inputs | caches)
        # Every logit is a candidate here, so all of them are compared, at their tokens' places.
        logits = np.full(expected.shape, -np.inf, np.float32)
        np.put_along_axis(logits, found[names.CANDIDATE_TOKENS], found[names.CANDIDATE_LOGITS], axis=1)
        hidden = np.isneginf(allowed.numpy())
        self._compare(f"logits of step {step}", np.where(hidden, 0, logits), np.where(hidden, 0, allowed.numpy()))
        whole, hidden = found[names.LOGITS], hidden[rows]
        named = f"{names.LOGITS} of named rows of step {step}"
        self._compare(
            named, np.where(hidden & np.isneginf(whole), 0, whole), np.where(hidden, 0, allowed.numpy()[rows])
        )
        for layer, queries in enumerate(expected_queries):
            name = names.CROSS_QUERIES.format(layer=layer)
            num_heads, head_dim = self._shapes.num_heads, self._shapes.head_dim
            by_head = queries.reshape(NUM_ROWS, num_heads, -1).numpy()
            ours = found[name].astype(np.float32).reshape(NUM_ROWS, num_heads, head_dim)[..., : by_head.shape[-1]]
            self._compare(f"{name} of step {step}", ours, by_head)
        normalizer = torch.logsumexp(expected, dim=-1).numpy()
        self._compare(f"log normalizer of step {step}", found[names.LOG_NORMALIZER], normalizer)
        for name in caches:
            if names.PRESENT + name in found:
                caches[name] = found[names.PRESENT + name]

    def _compare_caches(self, step: int, caches: dict[str, NDArray[np.floating]], past: DecoderCache) -> None:
        for layer, keys_values in enumerate(past.self_attention):
            for name, expected in zip(names.cache_names(layer), keys_values, strict=False):
                # A graph's heads may be wider than the model's, see export.attention.
                found = self._values(caches[name][:, :, : step + 1, : expected.shape[-1]])
                self._compare(f"{name} of step {step}", found, expected.numpy())

    def _values(self, cached: NDArray[np.generic]) -> NDArray[np.float32]:
        return cached.astype(np.float32) * np.float32(self._cache_step)

    def _compare(self, output: str, found: NDArray[np.floating], expected: NDArray[np.floating]) -> None:
        size = float(np.abs(expected).max(initial=0.0)) or 1.0
        self.differences.append(Difference(output, float(np.abs(found - expected).max(initial=0.0)) / size))
