"""Scaled dot-product attention with several heads, its keys and values explicit, and the masks it takes.

A mask is boolean, broadcasts to [rows, heads, query_len, source_len], and is True where a query may look.
"""

import torch
from torch import Tensor, nn

KeysValues = tuple[Tensor, Tensor]
"""Projected keys and values, each [rows, heads, source_len, head_dim]."""


def padding_mask(source_mask: Tensor) -> Tensor:
    """The mask that hides padding: boolean [rows, source_len], True at tokens, to [rows, 1, 1, source_len]."""
    return source_mask[:, None, None, :]


def causal_mask(query_len: int, past_len: int = 0, device: torch.device | None = None) -> Tensor:
    """The mask that hides the future: each of `query_len` new tokens sees the `past_len` before them, the new ones
    up to itself, and none after. Boolean [query_len, past_len + query_len].
    """
    queries = torch.arange(past_len, past_len + query_len, device=device)
    keys = torch.arange(past_len + query_len, device=device)
    return keys <= queries[:, None]


class MultiHeadAttention(nn.Module):
    """softmax(Q K^T / sqrt(head_dim)) V for each head (Vaswani et al. 2017, section 3.2).

    One module serves self-attention, causal self-attention and cross-attention: they differ in whose keys and values
    are passed and in the mask. `num_heads * head_dim` need not be `d_model`. `dropout` is of the probabilities.
    """

    def __init__(self, d_model: int, num_heads: int, head_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = head_dim
        self.query_proj = nn.Linear(d_model, num_heads * head_dim)
        self.key_proj = nn.Linear(d_model, num_heads * head_dim)
        self.value_proj = nn.Linear(d_model, num_heads * head_dim)
        self.out_proj = nn.Linear(num_heads * head_dim, d_model)
        self.dropout = nn.Dropout(dropout)

    def project_keys_values(self, memory: Tensor) -> KeysValues:
        """What there is to attend to: `memory` [rows, source_len, d_model] as keys and values of every head."""
        return self._split_heads(self.key_proj(memory)), self._split_heads(self.value_proj(memory))

    def forward(self, query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend from `query` [rows, query_len, d_model] to `keys` and `values`; the result has the query's shape.

        `mask` as described at the top of this file; None hides nothing. A query that may look nowhere gets the mean
        of all values: finite, and of no meaning.
        """
        queries = self._split_heads(self.query_proj(query))  # [rows, heads, query_len, head_dim]
        scores = queries @ keys.transpose(-2, -1) * self.head_dim**-0.5  # [rows, heads, query_len, source_len]
        if mask is not None:
            # Not -inf: softmax over nothing but -inf is NaN. Beside any visible score this weighs exactly 0 as well.
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        probabilities: Tensor = self.dropout(torch.softmax(scores, dim=-1))
        attended = (probabilities @ values).transpose(1, 2).flatten(-2)  # [rows, query_len, heads * head_dim]
        output: Tensor = self.out_proj(attended)
        return output

    def _split_heads(self, projected: Tensor) -> Tensor:
        # [rows, length, heads * head_dim] to [rows, heads, length, head_dim]
        rows, length, _ = projected.shape
        return projected.view(rows, length, self.num_heads, self.head_dim).transpose(1, 2)
