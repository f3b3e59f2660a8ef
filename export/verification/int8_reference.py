"""A model that rounds like its int8 graphs, for the size of the rounding error.

It is implemented in PyTorch, independently of the exporter, so that errors of the exporter are found.
"""

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

from bundle.tensors import INT8_CACHE_STEP
from export.int8.key_value_ranges import decoder_attentions
from model.layers import FeedForward
from model.transformer import EncoderModel, Transformer

Model = TypeVar("Model", bound=EncoderModel | Transformer)

_INT8 = torch.iinfo(torch.int8)
_SIGNED_LEVELS = 127
_UNSIGNED_LEVELS = 255
_LARGEST_PAIR = 128
# Relative. Sums in another order change less, but with 1e-6 one graph of 9 random models stayed far from all copies.
_NOISE = 1e-5
_BLOCK_OUTPUTS = 512  # a vocabulary has a gigabyte of weights


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
