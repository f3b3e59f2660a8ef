"""What a model says the outputs of its graphs must be, in the order in which a bundle's graphs are run.

It is asked through `Transformer.encode` and `decode`, not through the modules that the graphs were exported from.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from bundle import tensors as names
from bundle.tensors import Precision
from export.int8.key_value_ranges import with_unit_keys_values
from export.verification.int8_reference import rounded
from model.transformer import DecoderCache, Transformer

LOGITS = "logits"
LOG_NORMALIZER = "log normalizer"


@dataclass(frozen=True, slots=True)
class Expected:
    """An output, and the largest difference that rounding alone makes of it: none but in int8."""

    values: NDArray[np.float32]
    rounding: float = 0.0


class References:
    """The outputs for some sentences and the tokens that follow, step by step, in the ranges of a precision.

    `tokens` and `mask` [rows, source_len], the mask False at padding.
    """

    def __init__(
        self, transformer: Transformer, precision: Precision, tokens: NDArray[np.int32], mask: NDArray[np.bool_]
    ) -> None:
        self._exact = _Run(transformer, tokens, mask)
        self._rescaled_and_twin: tuple[_Run, _Run] | None = None
        if precision == "int8":
            # Keys and values of an int8 bundle are those of an equal model whose channels have other scales.
            rescaled = with_unit_keys_values(transformer)
            self._rescaled_and_twin = _Run(rescaled, tokens, mask), _Run(rounded(rescaled), tokens, mask)

    def cross(self) -> dict[str, Expected]:
        """Keys and values of every layer's cross-attention [rows, heads, source_len, head_dim], 0 at padding.

        In the order of the encoder graph's planes.
        """
        if self._rescaled_and_twin is None:
            return {name: Expected(values) for name, values in self._exact.cross().items()}
        rescaled, twin = (run.cross() for run in self._rescaled_and_twin)
        return {name: _in_cache(values, twin[name]) for name, values in rescaled.items()}

    def step(self, previous: NDArray[np.int32]) -> dict[str, Expected]:
        """What follows one token for each row.

        Logits [rows, vocab] and their normaliser [rows], queries of cross-attention [rows, heads, head_dim], and the
        keys and values of self-attention so far [rows, heads, length, head_dim].
        """
        exact = self._exact.step(previous)
        if self._rescaled_and_twin is None:
            return {name: Expected(values) for name, values in exact.items()}
        rescaled, twin = (run.step(previous) for run in self._rescaled_and_twin)
        expected = {}
        for name, values in rescaled.items():
            if name in (LOGITS, LOG_NORMALIZER):
                expected[name] = replace(_rounded_to(values, twin[name]), values=exact[name])
            else:  # of the two only what is cached has a length
                expected[name] = (_in_cache if values.ndim == 4 else _rounded_to)(values, twin[name])
        return expected


def _in_cache(values: NDArray[np.float32], twin: NDArray[np.float32]) -> Expected:
    """A cache in int8 ends a little beyond 1."""
    limits = np.iinfo(np.int8)
    return _rounded_to(values.clip(limits.min * names.INT8_CACHE_STEP, limits.max * names.INT8_CACHE_STEP), twin)


def _rounded_to(values: NDArray[np.float32], twin: NDArray[np.float32]) -> Expected:
    return Expected(values, float(np.abs(twin - values).max(initial=0.0)))


class _Run:
    """One model, from the sentences to one step after the other."""

    def __init__(self, transformer: Transformer, tokens: NDArray[np.int32], mask: NDArray[np.bool_]) -> None:
        self._transformer = transformer
        self._mask = torch.from_numpy(mask)
        memory = transformer.encode(torch.from_numpy(tokens).long(), self._mask)
        self._cross = transformer.decoder.project_memory(memory)
        self._past: DecoderCache | None = None

    def cross(self) -> dict[str, NDArray[np.float32]]:
        is_token = self._mask[:, None, :, None]
        return {
            f"cross {kind} {layer}": (values * is_token).numpy()
            for layer, keys_values in enumerate(self._cross)
            for kind, values in zip(("keys", "values"), keys_values, strict=True)
        }

    def step(self, previous: NDArray[np.int32]) -> dict[str, NDArray[np.float32]]:
        tokens = torch.from_numpy(previous).long()[:, None]
        with self._queries() as queries:
            logits, self._past = self._transformer.decode(tokens, self._cross, self._mask, self._past)
        found = {LOGITS: logits[:, -1], LOG_NORMALIZER: torch.logsumexp(logits[:, -1], dim=-1)}
        num_heads = self._transformer.config.decoder_shape.num_heads
        for layer, (asked, keys_values) in enumerate(zip(queries, self._past.self_attention, strict=True)):
            found[names.CROSS_QUERIES.format(layer=layer)] = asked.reshape(len(previous), num_heads, -1)
            found.update(zip(names.cache_names(layer), keys_values, strict=False))
        return {name: values.numpy() for name, values in found.items()}

    @contextmanager
    def _queries(self) -> Iterator[list[torch.Tensor]]:
        """Collects, layer by layer, the queries of cross-attention of what runs inside."""
        queries: list[torch.Tensor] = []
        hooks = [
            layer.cross_attention.query_proj.register_forward_hook(lambda _, __, output: queries.append(output))
            for layer in self._transformer.decoder.layers
        ]
        try:
            yield queries
        finally:
            for hook in hooks:
                hook.remove()
