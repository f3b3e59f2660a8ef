"""Reference outputs of a model for its graphs, in the order in which the graphs run.

They are computed with `Transformer.encode` and `decode`, not with the modules that the graphs were exported from.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
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
class Sentences:
    """Token ids [rows, source_len] of sentences of these `lengths` [rows], and `previous` [rows] of each step."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int32]
    previous: Sequence[NDArray[np.int32]]

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Return a mask [rows, source_len], False at padding."""
        return np.arange(self.tokens.shape[1]) < self.lengths[:, None]


@dataclass(frozen=True, slots=True)
class Expected:
    """A reference output, and those of the models that only round."""

    values: NDArray[np.float32]
    rounded: tuple[NDArray[np.float32], ...] = ()

    def changed(self, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> "Expected":
        """Return the outputs after the same change of each."""
        return Expected(change(self.values), tuple(map(change, self.rounded)))


class References:
    """Reference outputs for some sentences, in the ranges of a precision.

    In int8 beside those of a model that only rounds, and of more such models if `add_rounded_model` is called. In
    float32 that call makes the model in float64 the reference, and the model itself one that only rounds.
    """

    @torch.no_grad()
    def __init__(
        self,
        transformer: Transformer | EncoderModel,
        precision: Precision,
        sentences: Sentences,
        rescaled: Transformer | None = None,
    ) -> None:
        self._sentences = sentences
        self._in_int8 = precision == "int8"
        self._model = transformer
        self._exact = self._in_ranges = _run(transformer, sentences)
        self._rounded: list[_Outputs] = []
        if self._in_int8:
            # An int8 bundle has the keys and values of an equivalent model with rescaled channels.
            self._model = rescaled or transformer
            if rescaled is None and isinstance(transformer, Transformer):
                self._model = with_unit_keys_values(transformer)
            self._in_ranges = _run(self._model, sentences)
            self.add_rounded_model()

    @torch.no_grad()
    def add_rounded_model(self) -> None:
        """Add the outputs of another model that only rounds, in which other numbers than before are half-way."""
        if not self._in_int8:
            self._rounded = [self._exact]
            self._exact = self._in_ranges = _run(copy.deepcopy(self._model).double(), self._sentences)
            return
        self._rounded.append(_run(rounded(self._model, seed=len(self._rounded)), self._sentences))

    def hidden(self) -> Expected:
        """Return the hidden states of the encoder [rows, source_len, d_model], 0 at padding."""
        return Expected(self._exact.hidden, tuple(each.hidden for each in self._rounded))

    def cross(self) -> dict[str, Expected]:
        """Return every layer's cross-attention keys and values [rows, heads, source_len, head_dim], 0 at padding.

        They have the order of the encoder graph's planes.
        """
        return {
            name: self._in_cache(values, tuple(each.cross[name] for each in self._rounded))
            for name, values in self._in_ranges.cross.items()
        }

    def step(self, index: int) -> dict[str, Expected]:
        """Return the outputs after one token of each row.

        Logits [rows, vocab] and their normaliser [rows], queries of cross-attention [rows, heads, head_dim], and the
        keys and values of self-attention so far [rows, heads, length, head_dim], or the states [rows, 1, d_model].
        """
        expected = {}
        for name, values in self._in_ranges.steps[index].items():
            twins = tuple(each.steps[index][name] for each in self._rounded)
            if name in (LOGITS, LOG_NORMALIZER):
                # The rescaled model has the same logits but for the order of sums.
                expected[name] = Expected(self._exact.steps[index][name], twins)
            else:  # only cached tensors have a length axis
                expected[name] = (self._in_cache if values.ndim == 4 else Expected)(values, twins)
        return expected

    def _in_cache(self, values: NDArray[np.float32], twins: tuple[NDArray[np.float32], ...]) -> Expected:
        """Return the expected values, in int8 clipped to the range of caches, slightly beyond [-1, 1]."""
        if not self._in_int8:
            return Expected(values, twins)
        limits = np.iinfo(np.int8)
        return Expected(values.clip(limits.min * names.INT8_CACHE_STEP, limits.max * names.INT8_CACHE_STEP), twins)


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Outputs of one model: of its encoder, and of each step by name."""

    hidden: NDArray[np.float32]
    cross: dict[str, NDArray[np.float32]]
    steps: list[dict[str, NDArray[np.float32]]]


def _run(model: Transformer | EncoderModel, sentences: Sentences) -> _Outputs:
    mask = torch.from_numpy(sentences.mask)
    memory = model.encode(torch.from_numpy(sentences.tokens).long(), mask)
    hidden = (memory * mask[:, :, None]).numpy()
    if not isinstance(model, Transformer):
        return _Outputs(hidden, {}, [])
    projected = model.decoder.project_memory(memory)
    cross = {
        f"cross {kind} {layer}": (values * mask[:, None, :, None]).numpy()
        for layer, keys_values in enumerate(projected)
        for kind, values in zip(("keys", "values"), keys_values, strict=True)
    }
    steps = []
    past: DecoderCache | None = None
    for previous in sentences.previous:
        with _queries(model) as queries:
            logits, past = model.decode(torch.from_numpy(previous).long()[:, None], projected, mask, past)
        steps.append(_step(model, logits[:, -1], queries, past))
    return _Outputs(hidden, cross, steps)


def _step(
    model: Transformer, logits: torch.Tensor, queries: Sequence[torch.Tensor], cache: DecoderCache
) -> dict[str, NDArray[np.float32]]:
    found = {LOGITS: logits, LOG_NORMALIZER: torch.logsumexp(logits, dim=-1)}
    num_heads = model.config.decoder_shape.num_heads
    for layer, query in enumerate(queries):
        found[names.CROSS_QUERIES.format(layer=layer)] = query.reshape(len(logits), num_heads, -1)
    for layer, keys_values in enumerate(cache.self_attention):
        found.update(zip(names.cache_names(layer), keys_values, strict=False))
    for layer, state in enumerate(cache.states):
        found[names.STATE.format(layer=layer)] = state[:, None]
    return {name: values.numpy() for name, values in found.items()}


@contextmanager
def _queries(transformer: Transformer) -> Iterator[list[torch.Tensor]]:
    """Yield a list that receives the cross-attention queries of each layer of a run inside the context."""
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
