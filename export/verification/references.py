"""Reference outputs of a model for its graphs, in the order in which the graphs run.

They are computed with `Transformer.encode` and `decode`, not with the modules that the graphs were exported from.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from bundle import tensors as names
from bundle.tensors import Precision
from export.int8.key_value_ranges import with_unit_keys_values
from export.verification.int8_reference import rounded
from model.transformer import DecoderCache, EncoderModel, Transformer

LOGITS = "logits"
LOG_NORMALIZER = "log normalizer"


@dataclass(frozen=True, slots=True)
class Expected:
    """A reference output, and that of the model that only rounds; None in other precisions than int8."""

    values: NDArray[np.float32]
    rounded: NDArray[np.float32] | None = None

    def rows(self, rows: NDArray[np.int64]) -> "Expected":
        """Return these rows."""
        return Expected(self.values[rows], None if self.rounded is None else self.rounded[rows])


class References:
    """Reference outputs for some sentences and the tokens that follow, step by step, in the ranges of a precision.

    `tokens` and `mask` [rows, source_len], the mask False at padding.
    """

    def __init__(
        self,
        transformer: Transformer | EncoderModel,
        precision: Precision,
        tokens: NDArray[np.int32],
        mask: NDArray[np.bool_],
    ) -> None:
        self._exact = _Run(transformer, tokens, mask)
        self._rescaled_and_twin: tuple[_Run, _Run] | None = None
        if precision == "int8":
            # An int8 bundle has the keys and values of an equivalent model with rescaled channels.
            rescaled = with_unit_keys_values(transformer) if isinstance(transformer, Transformer) else transformer
            self._rescaled_and_twin = _Run(rescaled, tokens, mask), _Run(rounded(rescaled), tokens, mask)

    def hidden(self) -> Expected:
        """Return the hidden states of the encoder [rows, source_len, d_model], 0 at padding."""
        twin = None if self._rescaled_and_twin is None else self._rescaled_and_twin[1].hidden()
        return Expected(self._exact.hidden(), twin)

    def cross(self) -> dict[str, Expected]:
        """Return every layer's cross-attention keys and values [rows, heads, source_len, head_dim], 0 at padding.

        They have the order of the encoder graph's planes.
        """
        if self._rescaled_and_twin is None:
            return {name: Expected(values) for name, values in self._exact.cross().items()}
        rescaled, twin = (run.cross() for run in self._rescaled_and_twin)
        return {name: _in_cache(values, twin[name]) for name, values in rescaled.items()}

    def step(self, previous: NDArray[np.int32]) -> dict[str, Expected]:
        """Return the outputs after one token of each row.

        Logits [rows, vocab] and their normaliser [rows], queries of cross-attention [rows, heads, head_dim], and the
        keys and values of self-attention so far [rows, heads, length, head_dim], or the states [rows, 1, d_model].
        """
        exact = self._exact.step(previous)
        if self._rescaled_and_twin is None:
            return {name: Expected(values) for name, values in exact.items()}
        rescaled, twin = (run.step(previous) for run in self._rescaled_and_twin)
        expected = {}
        for name, values in rescaled.items():
            if name in (LOGITS, LOG_NORMALIZER):
                # The rescaled model has the same logits but for the order of sums.
                expected[name] = Expected(exact[name], twin[name])
            else:  # only cached tensors have a length axis
                expected[name] = (_in_cache if values.ndim == 4 else Expected)(values, twin[name])
        return expected


def _in_cache(values: NDArray[np.float32], twin: NDArray[np.float32]) -> Expected:
    """Return the expected values clipped to the range of int8 caches, slightly beyond [-1, 1]."""
    limits = np.iinfo(np.int8)
    return Expected(values.clip(limits.min * names.INT8_CACHE_STEP, limits.max * names.INT8_CACHE_STEP), twin)


class _Run:
    """One model run: the sentences, then step after step."""

    def __init__(self, model: Transformer | EncoderModel, tokens: NDArray[np.int32], mask: NDArray[np.bool_]) -> None:
        self._mask = torch.from_numpy(mask)
        self._memory = model.encode(torch.from_numpy(tokens).long(), self._mask)
        if isinstance(model, Transformer):
            self._transformer = model
            self._cross = model.decoder.project_memory(self._memory)
        self._past: DecoderCache | None = None

    def hidden(self) -> NDArray[np.float32]:
        hidden: NDArray[np.float32] = (self._memory * self._mask[:, :, None]).numpy()
        return hidden

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
        for layer, query in enumerate(queries):
            found[names.CROSS_QUERIES.format(layer=layer)] = query.reshape(len(previous), num_heads, -1)
        for layer, keys_values in enumerate(self._past.self_attention):
            found.update(zip(names.cache_names(layer), keys_values, strict=False))
        for layer, state in enumerate(self._past.states):
            found[names.STATE.format(layer=layer)] = state[:, None]
        return {name: values.numpy() for name, values in found.items()}

    @contextmanager
    def _queries(self) -> Iterator[list[torch.Tensor]]:
        """Yield a list that receives the cross-attention queries of each layer of a run inside the context."""
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
