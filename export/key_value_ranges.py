"""Keys and values of the decoder rescaled to [-1, 1], so that int8 caches need one fixed step and no table of scales.

Dividing a channel of the keys by its range and multiplying the queries by it leaves their products as they are; so does
dividing a channel of the values and multiplying what the output projection reads. The model stays the same function.

Ranges are those seen over random sentences, widened: no text is needed, and a value beyond its range is only clipped
in the cache.
"""

import copy

import torch
from torch import Tensor

from model.attention import KeysValues, MultiHeadAttention
from model.transformer import Transformer

_ROWS = 32
_LONGEST = 32
# Random tokens came within a third of what everyday sentences reach, channel by channel; see DECISIONS.md.
_MARGIN = 1.5
# Of the largest range of a layer: a channel that random sentences hardly move may be moved by others.
_SMALLEST = 0.1


@torch.no_grad()
def with_unit_keys_values(transformer: Transformer) -> Transformer:
    """A copy that computes the same, with the decoder's keys and values in [-1, 1]."""
    rescaled = copy.deepcopy(transformer).eval()
    self_attention, cross_attention = _random_keys_values(rescaled)
    for layer, own, cross in zip(rescaled.decoder.layers, self_attention, cross_attention, strict=True):
        _rescale(layer.self_attention, own)
        _rescale(layer.cross_attention, cross)
    return rescaled


def _random_keys_values(transformer: Transformer) -> tuple[list[KeysValues], list[KeysValues]]:
    """Those of every layer's self- and cross-attention over random sentences."""
    config = transformer.config
    generator = torch.Generator().manual_seed(0)
    source_len, target_len = min(_LONGEST, config.max_source_tokens), min(_LONGEST, config.max_target_tokens)
    source = torch.randint(config.encoder_shape.vocab_size, (_ROWS, source_len), generator=generator)
    lengths = torch.randint(1, source_len + 1, (_ROWS, 1), generator=generator)
    mask = torch.arange(source_len) < lengths
    target = torch.randint(config.decoder_shape.vocab_size, (_ROWS, target_len), generator=generator)
    target[:, 0] = config.decoder_start_token_id
    cross = transformer.decoder.project_memory(transformer.encode(source, mask))
    _, cache = transformer.decode(target, cross, mask)
    is_token = mask[:, None, :, None]
    return list(cache.self_attention), [(keys * is_token, values * is_token) for keys, values in cross]


def _rescale(attention: MultiHeadAttention, keys_values: KeysValues) -> None:
    key_range, value_range = map(_range, keys_values)
    for projection, factor in (
        (attention.query_proj, key_range),
        (attention.key_proj, 1 / key_range),
        (attention.value_proj, 1 / value_range),
    ):
        projection.weight.mul_(factor[:, None])
        projection.bias.mul_(factor)
    attention.out_proj.weight.mul_(value_range)


def _range(values: Tensor) -> Tensor:
    """[rows, heads, length, head_dim] to [heads * head_dim]."""
    largest = values.abs().amax(dim=(0, 2)).flatten()
    return _MARGIN * largest.clamp(min=max(_SMALLEST * float(largest.max()), torch.finfo(torch.float32).tiny))
