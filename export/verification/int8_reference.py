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
_BLOCK_OUTPUTS = 4096


@torch.no_grad()
def rounded(transformer: Model) -> Model:
    """Return a float32 copy whose weights, activations, keys and values are rounded as in int8.

    Keys and values of the decoder must be in [-1, 1], see export.int8.key_value_ranges.
    """
    twin = copy.deepcopy(transformer, {id(parameter): parameter for parameter in transformer.parameters()})
    rounded_weights: dict[int, nn.Parameter] = {}
    positive = {
        module.outer_proj
        for module in twin.modules()
        if isinstance(module, FeedForward) and module.activation is nn.functional.relu and module.gate_proj is None
    }
    for module in twin.modules():
        if isinstance(module, nn.Embedding | nn.Linear):
            # The output projection can share its weight with embeddings.
            if (key := id(module.weight)) not in rounded_weights:
                rounded_weights[key] = nn.Parameter(_in_blocks(module.weight))
            module.weight = rounded_weights[key]
        if isinstance(module, nn.Linear):
            levels = _UNSIGNED_LEVELS if module in positive else _SIGNED_LEVELS
            module.register_forward_pre_hook(lambda _, inputs, levels=levels: _in_steps(inputs[0], levels))
    for layer in twin.decoder.layers if isinstance(twin, Transformer) else ():
        for attention in decoder_attentions(layer):
            for projection in (attention.key_proj, attention.value_proj):
                projection.register_forward_hook(lambda _, __, output: _as_cached(output))
    return twin


def _in_blocks(weight: Tensor) -> Tensor:
    """Round a weight [outputs, inputs] some outputs at a time: a vocabulary has a gigabyte of them."""
    result = torch.empty_like(weight)
    for start in range(0, len(weight), _BLOCK_OUTPUTS):
        block = weight[start : start + _BLOCK_OUTPUTS]
        result[start : start + _BLOCK_OUTPUTS] = _weights_in_steps(block, _heaviest_pairs(block))
    return result


def _heaviest_pairs(weight: Tensor) -> Tensor:
    """Return the largest sum of adjacent weights of one sign, the first at an even input, of each row [outputs, 1]."""
    pairs = nn.functional.pad(weight, (0, weight.shape[1] % 2)).view(weight.shape[0], -1, 2)
    return torch.maximum(pairs.clamp(min=0).sum(dim=2), -pairs.clamp(max=0).sum(dim=2)).amax(dim=1, keepdim=True)


def _in_steps(values: Tensor, levels: int, largest: Tensor | None = None) -> Tensor:
    """Round each vector [.., width] to multiples of `largest`, by default its largest magnitude, over `levels`."""
    step = (values.abs().amax(dim=-1, keepdim=True) if largest is None else largest) / levels
    return torch.where(step > 0, torch.round(values / step) * step, 0.0)


def _weights_in_steps(weight: Tensor, heaviest: Tensor | None = None) -> Tensor:
    """Round a weight [outputs, inputs], but for outputs whose weights are int8 numbers times one step already.

    In these, one number is usually 1 or 2, and the others are multiples of it.
    """
    largest, smallest = weight.abs().amax(dim=1), weight.abs().masked_fill(weight == 0, torch.inf).amin(dim=1)
    kept = torch.zeros_like(largest, dtype=torch.bool)
    for multiple in (1, 2, 3):
        unit = largest / (largest * multiple / smallest).round()
        numbers = weight / unit[:, None]
        fits = (numbers - numbers.round()).abs().amax(dim=1) < 1e-3
        fits &= numbers.abs().amax(dim=1) < _SIGNED_LEVELS + 0.5
        if heaviest is not None:
            fits &= heaviest[:, 0] / unit < _LARGEST_PAIR + 0.5
        kept |= fits
    return torch.where(kept[:, None], weight, _in_steps(weight, _SIGNED_LEVELS, heaviest))


def _as_cached(values: Tensor) -> Tensor:
    return torch.round(values / INT8_CACHE_STEP).clamp(_INT8.min, _INT8.max) * INT8_CACHE_STEP
