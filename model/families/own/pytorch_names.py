"""Weights of PyTorch's `nn.Transformer` by the parameter names of `Transformer`."""

from collections.abc import Mapping

import torch
from torch import Tensor

# (PyTorch's name, ours) after `encoder.layers.0.` or `decoder.layers.0.`.
_ATTENTIONS = {"self_attn": "self_attention", "multihead_attn": "cross_attention"}
_PARTS = {"linear1": "feed_forward.inner_proj", "linear2": "feed_forward.outer_proj"}
_NORMS = {
    "encoder": {"norm1": "self_attention_norm", "norm2": "feed_forward_norm"},
    "decoder": {"norm1": "self_attention_norm", "norm2": "cross_attention_norm", "norm3": "feed_forward_norm"},
}
_PROJECTIONS = ("query_proj", "key_proj", "value_proj")


def from_pytorch(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights with the names of `nn.Transformer` under ours; other names stay.

    `in_proj_weight` and `in_proj_bias` contain three projections one below the other.
    """
    renamed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        stack, _, rest = name.partition(".")
        if stack not in _NORMS:
            renamed[name] = tensor
        elif rest.startswith("norm."):
            renamed[f"{stack}.final_{rest}"] = tensor
        elif rest.startswith("layers."):
            _, index, part, *inner = rest.split(".")
            renamed.update(_of_layer(stack, f"{stack}.layers.{index}", part, ".".join(inner), tensor))
        else:
            renamed[name] = tensor
    return renamed


def _of_layer(stack: str, layer: str, part: str, inner: str, tensor: Tensor) -> dict[str, Tensor]:
    if part in _ATTENTIONS and inner.startswith("in_proj_"):
        kind = inner.removeprefix("in_proj_")
        # Clones: a view of the fused weight could not be saved by itself.
        chunks = (chunk.clone() for chunk in torch.chunk(tensor, 3))
        names = (f"{layer}.{_ATTENTIONS[part]}.{projection}.{kind}" for projection in _PROJECTIONS)
        return dict(zip(names, chunks, strict=True))
    ours = _ATTENTIONS.get(part) or _PARTS.get(part) or _NORMS[stack].get(part) or part
    return {f"{layer}.{ours}.{inner}": tensor}
