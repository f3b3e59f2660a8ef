"""Reference outputs of a model for its graphs, in the order in which the graphs run.

They are computed with `Transformer.encode` and `decode`, not with the modules that the graphs were exported from.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bundle import tensors as names
from bundle.tensors import INT8_CACHE_STEP, Precision
from export.int8.key_value_ranges import decoder_attentions, with_unit_keys_values
from model.layers import FeedForward
from model.transformer import DecoderCache, EncoderModel, Transformer

LOGITS = "logits"
LOG_NORMALIZER = "log normalizer"
Model = TypeVar("Model", bound=EncoderModel | Transformer)

_INT8 = torch.iinfo(torch.int8)
_SIGNED_LEVELS = 127
_UNSIGNED_LEVELS = 255
_LARGEST_PAIR = 128
# Relative. Sums in another order change less, but with 1e-6 one graph of 9 random models stayed far from all copies.
_NOISE = 1e-5
_BLOCK_OUTPUTS = 512  # a vocabulary has a gigabyte of weights


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

    In int8 along with those of a model that only rounds, and of more such models if `add_rounded_model` is called. In
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


@torch.no_grad()
def rounded(transformer: Model, seed: int = 0) -> Model:
    """Return a float32 copy whose weights, activations, keys and values are rounded as in int8.

    Keys and values of the decoder must be in [-1, 1], see export.int8.key_value_ranges. Copies of other seeds than 0
    add noise of the size of float32's own, so that numbers half-way between two levels are rounded either way.
    """
    twin = copy.deepcopy(transformer, {id(parameter): parameter for parameter in transformer.parameters()})
    positive = {
        module.outer_proj
        for module in twin.modules()
        if isinstance(module, FeedForward) and module.activation is nn.functional.relu and module.gate_proj is None
    }
    noise = torch.Generator().manual_seed(seed) if seed else None
    for name, module in [*twin.named_modules()]:
        if isinstance(module, nn.Embedding):
            module.register_forward_hook(lambda _, __, vectors: _weights_in_steps(vectors))
        elif isinstance(module, nn.Linear):
            levels = _UNSIGNED_LEVELS if module in positive else _SIGNED_LEVELS
            parent, _, own_name = name.rpartition(".")
            setattr(twin.get_submodule(parent), own_name, _RoundedProduct(module, levels, noise))
    for layer in twin.decoder.layers if isinstance(twin, Transformer) else ():
        for attention in decoder_attentions(layer):
            for projection in (attention.key_proj, attention.value_proj):
                projection.register_forward_hook(lambda _, __, output: _as_cached(output))
    return twin


class _RoundedProduct(nn.Module):
    """A linear layer with rounded activations and weights, which are rounded in every run: no second copy exists."""

    def __init__(self, linear: nn.Linear, levels: int, noise: torch.Generator | None) -> None:
        super().__init__()
        self.weight = linear.weight
        self.bias: Tensor | None = linear.bias
        self.levels = levels
        self.noise = noise

    def forward(self, hidden: Tensor) -> Tensor:
        """Return the product [.., outputs] of hidden states [.., inputs]."""
        if self.noise is not None:
            hidden = hidden * (1 + _NOISE * torch.randn(hidden.shape, generator=self.noise))
        hidden = _in_steps(hidden, self.levels)
        product = hidden.new_empty(*hidden.shape[:-1], len(self.weight))
        for start in range(0, len(self.weight), _BLOCK_OUTPUTS):
            block = slice(start, start + _BLOCK_OUTPUTS)
            bias = None if self.bias is None else self.bias[block]
            product[..., block] = nn.functional.linear(hidden, _weights_in_steps(self.weight[block]), bias)
        return product


def _heaviest_pairs(weight: Tensor) -> Tensor:
    """Return the largest sum of adjacent weights of one sign, the first at an even input, [.., 1] for [.., inputs]."""
    pairs = nn.functional.pad(weight, (0, weight.shape[-1] % 2)).reshape(*weight.shape[:-1], -1, 2)
    return torch.maximum(pairs.clamp(min=0).sum(dim=-1), -pairs.clamp(max=0).sum(dim=-1)).amax(dim=-1, keepdim=True)


def _in_steps(values: Tensor, levels: int, largest: Tensor | None = None) -> Tensor:
    """Round each vector [.., width] to multiples of `largest`, by default its largest magnitude, over `levels`."""
    step = (values.abs().amax(dim=-1, keepdim=True) if largest is None else largest) / levels
    return torch.where(step > 0, torch.round(values / step) * step, 0.0)


def _weights_in_steps(weight: Tensor) -> Tensor:
    """Round a weight [.., inputs], but for outputs whose weights are int8 numbers times one step already.

    In these, one number is usually 1 or 2, and the others are multiples of it.
    """
    heaviest = _heaviest_pairs(weight)
    largest = weight.abs().amax(dim=-1, keepdim=True)
    smallest = weight.abs().masked_fill(weight == 0, torch.inf).amin(dim=-1, keepdim=True)
    kept = torch.zeros_like(largest, dtype=torch.bool)
    for multiple in (1, 2, 3):
        unit = largest / (largest * multiple / smallest).round()
        numbers = weight / unit
        fits = (numbers - numbers.round()).abs().amax(dim=-1, keepdim=True) < 1e-3
        fits &= numbers.abs().amax(dim=-1, keepdim=True) < _SIGNED_LEVELS + 0.5
        kept |= fits & (heaviest / unit < _LARGEST_PAIR + 0.5)
    return torch.where(kept, weight, _in_steps(weight, _SIGNED_LEVELS, heaviest))


def _as_cached(values: Tensor) -> Tensor:
    return torch.round(values / INT8_CACHE_STEP).clamp(_INT8.min, _INT8.max) * INT8_CACHE_STEP
