"""Hidden states of models with RMS norms, divided so that they stay within the range of float16.

The feed-forwards of trained T5 models write values beyond 65504, the largest float16. An RMS norm divides by the size
of its input, so hidden states that are all divided by one number give the same results: the embeddings and every
projection that is added to the hidden states are divided, and the epsilon of the norms by its square.
"""

import copy

import torch
from torch import nn

from model.layers import RMSNorm
from model.transformer import Transformer

# A power of two, so that no weight is rounded.
_DIVISOR = 64.0


@torch.no_grad()
def within_float16(transformer: Transformer) -> Transformer:
    """Return a copy that computes the same with smaller hidden states, or an equal copy of a model unlike T5."""
    config, divided = transformer.config, copy.deepcopy(transformer)
    is_like_t5 = config.norm == "rms" and config.norm_placement == "pre" and config.final_norm
    if not is_like_t5 or config.has_recurrent_decoder or config.embedding_norm or config.positions != "none":
        return divided
    # The output projection must keep its weight.
    divided.output_projection.weight = nn.Parameter(divided.output_projection.weight.clone())
    stacks = (divided.encoder, divided.decoder)
    for embedding in {stack.embedding for stack in stacks}:
        embedding.weight.div_(_DIVISOR)
    for module in divided.modules():
        if isinstance(module, RMSNorm):
            module.eps /= _DIVISOR**2
    for layer in [*divided.encoder.layers, *divided.decoder.layers]:
        for name in ("self_attention.out_proj", "cross_attention.out_proj", "feed_forward.outer_proj"):
            part, _, projection = name.partition(".")
            if hasattr(layer, part):
                _divide(getattr(getattr(layer, part), projection))
    return divided


def _divide(projection: nn.Linear) -> None:
    projection.weight.div_(_DIVISOR)
    bias: torch.Tensor | None = projection.bias
    if bias is not None:
        bias.div_(_DIVISOR)
