"""Rescaling of the decoder's keys and values to [-1, 1], so that int8 caches have one fixed step.

Dividing a channel of the keys by its range and multiplying the queries by it keeps their products; dividing a channel
of the values and multiplying the input of the output projection keeps its result. The model computes the same function.

Ranges are measured on random sentences and widened: this requires no text, and a value beyond its range is only clipped
in the cache.
"""

import copy
from collections.abc import Iterable

import torch
from torch import Tensor

from model.attention import KeysValues, MultiHeadAttention
from model.layers import DecoderLayer, RecurrentDecoderLayer
from model.transformer import Transformer

# Lengths with equal numbers of tokens: a token of a short sentence is mixed with few others, so its keys and values are
# larger.
_LENGTHS = (2, 4, 8, 16, 32)
_TOKENS_OF_EACH = 1024
# Random tokens reach at least two thirds of the range of real sentences; see docs/decisions/int8.md.
_MARGIN = 1.5
# Ranges of a model that was rescaled before, measured again with int8 weights.
_NEARLY_ONE = (0.9, 1.1)
# Smallest range, as a share of the layer's largest: real sentences may use channels that random ones hardly use.
_SMALLEST = 0.1


@torch.no_grad()
def with_unit_keys_values(transformer: Transformer) -> Transformer:
    """Return a copy that computes the same, with the decoder's keys and values in [-1, 1].

    It shares all parameters but those of the decoder's attention.
    """
    changed = {
        id(parameter)
        for layer in transformer.decoder.layers
        for attention in decoder_attentions(layer)
        for parameter in attention.parameters()
    }
    shared = {id(parameter): parameter for parameter in transformer.parameters() if id(parameter) not in changed}
    rescaled = copy.deepcopy(transformer, shared).eval()
    own, cross = _magnitudes(rescaled)
    for index, layer in enumerate(rescaled.decoder.layers):
        *own_attention, cross_attention = decoder_attentions(layer)
        for attention in own_attention:
            _rescale(attention, *own[index])
        _rescale(cross_attention, *cross[index])
    return rescaled


def decoder_attentions(layer: DecoderLayer | RecurrentDecoderLayer) -> tuple[MultiHeadAttention, ...]:
    """Return the attention sub-layers of a decoder layer, that to the source last."""
    if isinstance(layer, RecurrentDecoderLayer):
        return (layer.cross_attention,)
    return layer.self_attention, layer.cross_attention


def _magnitudes(transformer: Transformer) -> tuple[list[KeysValues], list[KeysValues]]:
    """Return the magnitudes [heads * head_dim] of every layer's self- and cross-attention keys and values."""
    generator = torch.Generator().manual_seed(0)
    own, cross = zip(*(_random_magnitudes(transformer, length, generator) for length in _LENGTHS), strict=True)
    return [_largest(layer) for layer in zip(*own, strict=True)], [
        _largest(layer) for layer in zip(*cross, strict=True)
    ]


def _random_magnitudes(
    transformer: Transformer, length: int, generator: torch.Generator
) -> tuple[list[KeysValues], list[KeysValues]]:
    """Return the magnitudes of every layer's keys and values for random sentences of this length."""
    config = transformer.config
    rows = _TOKENS_OF_EACH // length
    source_len, target_len = min(length, config.max_source_tokens), min(length, config.max_target_tokens)
    source = torch.randint(config.encoder_shape.vocab_size, (rows, source_len), generator=generator)
    target = torch.randint(config.decoder_shape.vocab_size, (rows, target_len), generator=generator)
    target[:, 0] = config.decoder_start_token_id
    mask = torch.ones_like(source, dtype=torch.bool)
    cross = transformer.decoder.project_memory(transformer.encode(source, mask))
    _, cache = transformer.decoder(target, cross, mask, None)  # without logits, a gigabyte with 256,000 tokens
    return [_of_channels(*layer) for layer in cache.self_attention], [_of_channels(*layer) for layer in cross]


def _of_channels(keys: Tensor, values: Tensor) -> KeysValues:
    """Return the magnitudes [heads * head_dim] of keys and values [rows, heads, length, head_dim]."""
    return keys.abs().amax(dim=(0, 2)).flatten(), values.abs().amax(dim=(0, 2)).flatten()


def _largest(runs: Iterable[KeysValues]) -> KeysValues:
    """Return the largest magnitudes of several runs."""
    keys, values = (torch.stack(of).amax(0) for of in zip(*runs, strict=True))
    return keys, values


def _rescale(attention: MultiHeadAttention, keys: Tensor, values: Tensor) -> None:
    """Rescale the projections that produce keys and values of these magnitudes, and those that read them."""
    key_range, value_range = _range(keys), _range(values)
    for projection, factor in (
        (attention.query_proj, key_range),
        (attention.key_proj, 1 / key_range),
        (attention.value_proj, 1 / value_range),
    ):
        projection.weight.mul_(factor[:, None])
        if projection.bias is not None:
            projection.bias.mul_(factor)
    attention.out_proj.weight.mul_(value_range)


def _range(magnitudes: Tensor) -> Tensor:
    """Return the range of each channel; ones for a layer that was rescaled before, so that its weights stay the same.

    There most channels reach the margin and none is far beyond it, so ranges would hardly differ from one.
    """
    least, most = _NEARLY_ONE
    if float(magnitudes.median()) * _MARGIN >= least and float(magnitudes.max()) * _MARGIN <= most:
        return torch.ones_like(magnitudes)
    smallest = max(_SMALLEST * float(magnitudes.max()), torch.finfo(torch.float32).tiny)
    return _MARGIN * magnitudes.clamp(min=smallest)
