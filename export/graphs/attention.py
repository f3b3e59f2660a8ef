"""Attention of a bundle's graphs: `com.microsoft.GroupQueryAttention`, and what it computes written out in PyTorch.

The operator is what the exported graph has, because its cost follows each row's valid length and it appends to the
caches in place. In eager mode the same places run `_grouped_attention`, so that one module can be compared with the
graph made of it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention

# What the operator takes, on the CPU of ONNX Runtime 1.31: it refuses every other head size when it runs.
_HEAD_DIM_MULTIPLE = 8


def padded_head_dim(head_dim: int) -> int:
    """The head size that a graph uses for a model's `head_dim`: the next one that the operator takes."""
    return -(-head_dim // _HEAD_DIM_MULTIPLE) * _HEAD_DIM_MULTIPLE


@dataclass(frozen=True, slots=True)
class Heads:
    """The heads of one attention as the operator sees them.

    Behind the model's own `head_dim` numbers of each head stand zeros up to `padded_dim`: they add nothing to products
    of queries and keys, and give values that are zero and meet no weight. `scale` stays that of the model.
    """

    count: int
    head_dim: int
    padded_dim: int

    @classmethod
    def of(cls, attention: MultiHeadAttention) -> "Heads":
        """Those of a layer of the model."""
        return cls(attention.num_heads, attention.head_dim, padded_head_dim(attention.head_dim))

    @property
    def width(self) -> int:
        """All heads side by side."""
        return self.count * self.padded_dim

    @property
    def scale(self) -> float:
        """What products of queries and keys are multiplied by."""
        return float(self.head_dim**-0.5)

    def pad_outputs(self, projection: nn.Linear) -> nn.Linear:
        """A projection to queries, keys or values, with the zeros."""
        padded = nn.Linear(projection.in_features, self.width, dtype=projection.weight.dtype)
        weight, bias = projection.weight.detach(), projection.bias.detach()
        padded.weight = nn.Parameter(self._pad(weight.reshape(self.count, self.head_dim, -1), 1).flatten(0, 1))
        padded.bias = nn.Parameter(self._pad(bias.reshape(self.count, self.head_dim), 1).flatten())
        return padded

    def pad_inputs(self, projection: nn.Linear) -> nn.Linear:
        """The projection of what was attended to, with no weight for the zeros."""
        padded = nn.Linear(self.width, projection.out_features, dtype=projection.weight.dtype)
        weight = projection.weight.detach().reshape(-1, self.count, self.head_dim)
        padded.weight = nn.Parameter(self._pad(weight, 2).flatten(1, 2))
        padded.bias = nn.Parameter(projection.bias.detach())
        return padded

    def _pad(self, tensor: Tensor, axis: int) -> Tensor:
        zeros = list(tensor.shape)
        zeros[axis] = self.padded_dim - self.head_dim
        return torch.cat([tensor, tensor.new_zeros(zeros)], dim=axis)


def attend_in_encoder(
    fused: Tensor, last_positions: Tensor, total: Tensor, heads: Heads, *, keeps_keys_values: bool = False
) -> Tensor:
    """Bidirectional self-attention over ragged rows; `fused` [rows, source_len, 3 * width], queries, keys, values.

    On CUDA the operator insists on writing keys and values down, which `keeps_keys_values` lets it do for nobody.
    """
    rows, source_len, _ = fused.shape
    if torch.onnx.is_in_onnx_export():
        kept = (rows, heads.count, source_len, heads.padded_dim)
        num_outputs = 3 if keeps_keys_values else 1
        attended = torch.onnx.ops.symbolic_multi_out(
            "com.microsoft::GroupQueryAttention",
            (fused, None, None, None, None, last_positions, total),
            attrs={"num_heads": heads.count, "kv_num_heads": heads.count, "causal": 0, "scale": heads.scale},
            dtypes=(fused.dtype,) * num_outputs,
            shapes=((rows, source_len, heads.width), kept, kept)[:num_outputs],
            version=1,
        )
        return attended[0]
    split = (rows, source_len, 3, heads.count, heads.padded_dim)
    queries, keys, values = fused.view(split).permute(2, 0, 3, 1, 4)
    return _grouped_attention(queries, keys, values, last_positions, heads.scale)


def attend_in_step(
    query_key_value: tuple[Tensor, Tensor | None, Tensor | None],
    past_keys: Tensor,
    past_values: Tensor,
    positions: Tensor,
    heads: Heads,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention of one token for each row over its cache up to `positions`, where its own key and value are put.

    Each of `query_key_value` is [rows, 1, width], or the first holds all three side by side. Cross-attention hands in
    the key and value that stand there already, so that nothing changes.
    """
    query, key, value = query_key_value
    rows, _, cache_len, _ = past_keys.shape
    if torch.onnx.is_in_onnx_export():
        attended = torch.onnx.ops.symbolic_multi_out(
            "com.microsoft::GroupQueryAttention",
            (query, key, value, past_keys, past_values, positions, torch.scalar_tensor(cache_len, dtype=torch.int32)),
            attrs={"num_heads": heads.count, "kv_num_heads": heads.count, "scale": heads.scale},
            dtypes=(query.dtype, past_keys.dtype, past_values.dtype),
            shapes=((rows, 1, heads.width), past_keys.shape, past_values.shape),
            version=1,
        )
        return attended[0], attended[1], attended[2]
    if key is None or value is None:
        query, key, value = query.chunk(3, dim=-1)
    split = (rows, heads.count, heads.padded_dim)
    keys, values = past_keys.clone(), past_values.clone()
    every_row = torch.arange(rows)
    keys[every_row, :, positions] = key.reshape(split)
    values[every_row, :, positions] = value.reshape(split)
    queries = query.reshape(split).unsqueeze(2)
    return _grouped_attention(queries, keys, values, positions, heads.scale), keys, values


def _grouped_attention(queries: Tensor, keys: Tensor, values: Tensor, last_positions: Tensor, scale: float) -> Tensor:
    """Softmax attention of [rows, heads, query_len, head_dim] over each row's first `last_positions` + 1 places."""
    rows, heads, query_len, head_dim = queries.shape
    scores = queries @ keys.transpose(-2, -1) * scale
    visible = torch.arange(keys.shape[2]) <= last_positions[:, None]  # [rows, source_len]
    probabilities = torch.softmax(scores.masked_fill(~visible[:, None, None, :], -torch.inf), dim=-1)
    # Whatever stands behind a row's length, NaN included, must not be multiplied in.
    attended = probabilities @ values.masked_fill(~visible[:, None, :, None], 0.0)
    return attended.transpose(1, 2).reshape(rows, query_len, heads * head_dim)
