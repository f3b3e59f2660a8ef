"""Attention of a bundle's graphs: the operator `com.microsoft.GroupQueryAttention`, and its equivalent in PyTorch.

Exported graphs use the operator: its cost depends on each row's valid length, and it appends to the caches in place.
Eager mode runs `_grouped_attention`, so that a module can be compared with its graph.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.attention import MultiHeadAttention

# ONNX Runtime 1.31 rejects other head sizes on the CPU at run time.
_HEAD_DIM_MULTIPLE = 8


def padded_head_dim(head_dim: int) -> int:
    """Return the head size of a graph for a model's `head_dim`: the next one that the operator supports."""
    return -(-head_dim // _HEAD_DIM_MULTIPLE) * _HEAD_DIM_MULTIPLE


@dataclass(frozen=True, slots=True)
class Heads:
    """Attention heads padded for the operator.

    Each head has the model's `head_dim` numbers, then zeros up to `padded_dim`. The zeros add nothing to products of
    queries and keys, and their values have no weights in the output projection. `scale`, the factor of the products of
    queries and keys, is the model's.
    """

    count: int
    head_dim: int
    padded_dim: int
    scale: float

    @classmethod
    def of(cls, attention: MultiHeadAttention) -> "Heads":
        """Return the heads of a layer."""
        return cls(attention.num_heads, attention.head_dim, padded_head_dim(attention.head_dim), attention.scale)

    @property
    def width(self) -> int:
        """Total width of all heads."""
        return self.count * self.padded_dim

    def pad_outputs(self, projection: nn.Linear) -> nn.Linear:
        """Return a projection to queries, keys or values with padded heads."""
        padded = nn.Linear(projection.in_features, self.width, dtype=projection.weight.dtype)
        weight, bias = projection.weight.detach(), bias_of(projection)
        padded.weight = nn.Parameter(self._pad(weight.reshape(self.count, self.head_dim, -1), 1).flatten(0, 1))
        padded.bias = nn.Parameter(self._pad(bias.reshape(self.count, self.head_dim), 1).flatten())
        return padded

    def pad_inputs(self, projection: nn.Linear) -> nn.Linear:
        """Return an output projection that reads padded heads."""
        padded = nn.Linear(self.width, projection.out_features, dtype=projection.weight.dtype)
        weight = projection.weight.detach().reshape(-1, self.count, self.head_dim)
        padded.weight = nn.Parameter(self._pad(weight, 2).flatten(1, 2))
        padded.bias = nn.Parameter(bias_of(projection))
        return padded

    def _pad(self, tensor: Tensor, axis: int) -> Tensor:
        zeros = list(tensor.shape)
        zeros[axis] = self.padded_dim - self.head_dim
        return torch.cat([tensor, tensor.new_zeros(zeros)], dim=axis)


def bias_of(projection: nn.Linear) -> Tensor:
    """Return the bias of a projection, zeros if it has none: all graphs add one."""
    bias: Tensor | None = projection.bias
    weight = projection.weight.detach()
    return weight.new_zeros(weight.shape[0]) if bias is None else bias.detach()


def attend_in_encoder(
    fused: Tensor,
    last_positions: Tensor,
    total: Tensor,
    heads: Heads,
    position_bias: Tensor | None = None,
    *,
    keeps_keys_values: bool = False,
) -> Tensor:
    """Bidirectional self-attention over ragged rows; `fused` [rows, source_len, 3 * width], queries, keys, values.

    `position_bias` [1, heads, source_len, source_len] is added to the scores. On CUDA the operator requires outputs for
    keys and values; `keeps_keys_values` adds them, and nothing reads them.
    """
    rows, source_len, _ = fused.shape
    if torch.onnx.is_in_onnx_export():
        kept = (rows, heads.count, source_len, heads.padded_dim)
        num_outputs = 3 if keeps_keys_values else 1
        attended = torch.onnx.ops.symbolic_multi_out(
            "com.microsoft::GroupQueryAttention",
            (fused, None, None, None, None, last_positions, total, *_in_place(position_bias)),
            attrs={"num_heads": heads.count, "kv_num_heads": heads.count, "causal": 0, "scale": heads.scale},
            dtypes=(fused.dtype,) * num_outputs,
            shapes=((rows, source_len, heads.width), kept, kept)[:num_outputs],
            version=1,
        )
        return attended[0]
    split = (rows, source_len, 3, heads.count, heads.padded_dim)
    queries, keys, values = fused.view(split).permute(2, 0, 3, 1, 4)
    return _grouped_attention(queries, keys, values, last_positions, heads.scale, position_bias)


def attend_in_step(
    query_key_value: tuple[Tensor, Tensor | None, Tensor | None],
    past_keys: Tensor,
    past_values: Tensor,
    positions: Tensor,
    heads: Heads,
    position_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention of one token of each row over its cache up to `positions`, where its own key and value are stored.

    Each of `query_key_value` is [rows, 1, width], or the first contains all three side by side. Cross-attention passes
    the key and value that the cache contains already. `position_bias` [rows, heads, 1, cache_len] is added to the
    scores.
    """
    query, key, value = query_key_value
    rows, _, cache_len, _ = past_keys.shape
    if torch.onnx.is_in_onnx_export():
        attended = torch.onnx.ops.symbolic_multi_out(
            "com.microsoft::GroupQueryAttention",
            (
                *(query, key, value, past_keys, past_values, positions),
                torch.scalar_tensor(cache_len, dtype=torch.int32),
                *_in_place(position_bias),
            ),
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
    return _grouped_attention(queries, keys, values, positions, heads.scale, position_bias), keys, values


def _in_place(position_bias: Tensor | None) -> tuple[Tensor | None, ...]:
    """Return the inputs of the operator after the seventh, up to the bias."""
    return () if position_bias is None else (None, None, None, position_bias)


def _grouped_attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    last_positions: Tensor,
    scale: float,
    position_bias: Tensor | None = None,
) -> Tensor:
    """Softmax attention of [rows, heads, query_len, head_dim] over each row's first `last_positions` + 1 positions."""
    rows, heads, query_len, head_dim = queries.shape
    scores = queries @ keys.transpose(-2, -1) * scale
    if position_bias is not None:
        scores = scores + position_bias
    visible = torch.arange(keys.shape[2]) <= last_positions[:, None]  # [rows, source_len]
    probabilities = torch.softmax(scores.masked_fill(~visible[:, None, None, :], -torch.inf), dim=-1)
    # Values after a row's length can be NaN and must not be multiplied.
    attended = probabilities @ values.masked_fill(~visible[:, None, :, None], 0.0)
    return attended.transpose(1, 2).reshape(rows, query_len, heads * head_dim)
