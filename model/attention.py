"""Multi-head scaled dot-product attention with explicit keys and values, and its masks.

A mask is boolean, broadcasts to [rows, heads, query_len, source_len], and is True at visible positions.
"""

import torch
from torch import Tensor, nn

KeysValues = tuple[Tensor, Tensor]
"""Projected keys and values, each [rows, heads, source_len, head_dim]."""


def padding_mask(source_mask: Tensor) -> Tensor:
    """Return the mask [rows, 1, 1, source_len] of a `source_mask` [rows, source_len] that is True at tokens."""
    return source_mask[:, None, None, :]


def causal_mask(query_len: int, past_len: int = 0, device: torch.device | None = None) -> Tensor:
    """Return the mask [query_len, past_len + query_len] that hides the future.

    Each of `query_len` new tokens sees the `past_len` tokens before them, and the new ones up to itself.
    """
    queries = torch.arange(past_len, past_len + query_len, device=device)
    keys = torch.arange(past_len + query_len, device=device)
    return keys <= queries[:, None]


class MultiHeadAttention(nn.Module):
    """softmax(scale Q K^T + bias) V for each head (Vaswani et al. 2017, section 3.2).

    The keys, values and mask make it self-attention, causal self-attention or cross-attention. `num_heads * head_dim`
    can differ from `d_model`. `dropout` applies to the probabilities. Default of `scale`: `head_dim ** -0.5`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        head_dim: int,
        dropout: float = 0.0,
        *,
        scale: float | None = None,
        biases: bool = True,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.scale = float(head_dim**-0.5) if scale is None else scale
        self.query_proj = nn.Linear(d_model, num_heads * head_dim, bias=biases)
        self.key_proj = nn.Linear(d_model, num_heads * head_dim, bias=biases)
        self.value_proj = nn.Linear(d_model, num_heads * head_dim, bias=biases)
        self.out_proj = nn.Linear(num_heads * head_dim, d_model, bias=biases)
        self.dropout = nn.Dropout(dropout)

    def project_keys_values(self, memory: Tensor) -> KeysValues:
        """Return `memory` [rows, source_len, d_model] as keys and values of every head."""
        return self._split_heads(self.key_proj(memory)), self._split_heads(self.value_proj(memory))

    def forward(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None = None,
        position_bias: Tensor | None = None,
    ) -> Tensor:
        """Attend from `query` [rows, query_len, d_model] to `keys` and `values`; the result has the query's shape.

        A `mask` of None hides nothing. `position_bias` [heads, query_len, source_len] is added to the scores. A query
        without visible positions gets the mean of all values: finite, without a meaning.
        """
        queries = self._split_heads(self.query_proj(query))  # [rows, heads, query_len, head_dim]
        scores = queries @ keys.transpose(-2, -1) * self.scale  # [rows, heads, query_len, source_len]
        if position_bias is not None:
            scores = scores + position_bias
        if mask is not None:
            # Not -inf: softmax of only -inf is NaN. Next to a visible score, this has weight 0 as well.
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        probabilities: Tensor = self.dropout(torch.softmax(scores, dim=-1))
        attended = (probabilities @ values).transpose(1, 2).flatten(-2)  # [rows, query_len, heads * head_dim]
        output: Tensor = self.out_proj(attended)
        return output

    def _split_heads(self, projected: Tensor) -> Tensor:
        # [rows, length, heads * head_dim] to [rows, heads, length, head_dim]
        rows, length, _ = projected.shape
        return projected.view(rows, length, self.num_heads, self.head_dim).transpose(1, 2)
