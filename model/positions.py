"""Positions of tokens: sinusoidal, computed for any length; learned, from a table; relative, as a bias on attention."""

import math
from typing import Final

import torch
from torch import Tensor, nn

from model.config import SinusoidLayout

# Tables are float16 in some models.
_TABLE_TOLERANCE: Final = 2e-3
_MAX_SINUSOIDAL_TOKENS: Final = 1024
_DEFAULT_TOKENS: Final = 512


def sinusoidal_positions(length: int, d_model: int, layout: SinusoidLayout, offset: int = 0) -> Tensor:
    """Return the sinusoids of positions `offset` to `offset + length - 1` (Vaswani et al. 2017, section 3.5).

    Returns float32 [length, d_model]: sin(position / 10000 ** (2 i / d_model)) and the cosine of the same angle, for
    i = 0 to d_model / 2 - 1. "interleaved" puts each cosine after its sine, as in the paper; "halves" puts all sines
    before all cosines, as in Marian; "halves_inclusive" has also another exponent, i / (d_model / 2 - 1), as in M2M100.
    Angles are float64, so that distant positions are exact, too.
    """
    positions = torch.arange(offset, offset + length, dtype=torch.float64)
    num_angles = d_model / 2 - 1 if layout == "halves_inclusive" else d_model / 2
    wavelengths = 10000.0 ** (torch.arange(d_model // 2, dtype=torch.float64) / num_angles)
    angles = positions[:, None] / wavelengths  # [length, d_model / 2]
    sines, cosines = angles.sin(), angles.cos()
    if layout != "interleaved":
        return torch.cat([sines, cosines], dim=-1).to(torch.float32)
    return torch.stack([sines, cosines], dim=-1).flatten(-2).to(torch.float32)


class SinusoidalPositions(nn.Module):
    """Sinusoidal positions, computed for any length. `offset` is the position of the first token."""

    def __init__(self, d_model: int, layout: SinusoidLayout, offset: int = 0) -> None:
        super().__init__()
        self.d_model = d_model
        self.layout: SinusoidLayout = layout
        self.offset = offset

    def forward(self, first: int, length: int) -> Tensor:
        """Return position vectors [length, d_model] of tokens `first` to `first + length - 1`, on the CPU."""
        return sinusoidal_positions(length, self.d_model, self.layout, self.offset + first)


class LearnedPositions(nn.Module):
    """A trained vector for each of `max_tokens` positions, after `offset` unused rows (two in BART)."""

    def __init__(self, max_tokens: int, d_model: int, offset: int = 0) -> None:
        super().__init__()
        self.max_tokens = max_tokens
        self.offset = offset
        self.weight = nn.Parameter(torch.empty(offset + max_tokens, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, first: int, length: int) -> Tensor:
        """Return position vectors [length, d_model] of tokens `first` to `first + length - 1`.

        Raises ValueError beyond the table.
        """
        if first + length > self.max_tokens:
            raise ValueError(
                f"the model has learned positions for {self.max_tokens} tokens. Given: {first + length}; split the text"
            )
        start = self.offset + first
        return self.weight[start : start + length]


class NoPositions(nn.Module):
    """Absolute positions that add nothing, for models with relative positions only."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model

    def forward(self, first: int, length: int) -> Tensor:
        """Return zeros [length, d_model]."""
        return torch.zeros(length, self.d_model)


class RelativePositionBias(nn.Module):
    """A trained bias for each head and bucket of distances between two tokens (Raffel et al. 2020, section 2.1).

    Half of the buckets have a single distance each, the others grow logarithmically up to `max_distance`. With
    `both_directions`, as in encoders, half of all buckets are for keys after the query.
    """

    def __init__(self, num_heads: int, num_buckets: int, max_distance: int, both_directions: bool) -> None:
        super().__init__()
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.both_directions = both_directions
        self.weight = nn.Parameter(torch.empty(num_buckets, num_heads))
        nn.init.normal_(self.weight, std=0.1)

    def buckets(self, offsets: Tensor) -> Tensor:
        """Return the bucket of each offset, the key's position minus the query's."""
        num_buckets = self.num_buckets // 2 if self.both_directions else self.num_buckets
        distances = offsets.abs() if self.both_directions else (-offsets).clamp(min=0)
        num_single = num_buckets // 2
        # float32 as in the reference: at the borders of buckets the logarithm is rounded.
        share = torch.log(distances.clamp(min=1).float() / num_single) / math.log(self.max_distance / num_single)
        wide = num_single + (share * (num_buckets - num_single)).long()
        buckets = torch.where(distances < num_single, distances, wide.clamp(max=num_buckets - 1))
        return buckets + (offsets > 0).long() * num_buckets if self.both_directions else buckets

    def by_offset(self, first: int, last: int) -> Tensor:
        """Return the biases [heads, last - first + 1] of the offsets `first` to `last`."""
        return self.weight[self.buckets(torch.arange(first, last + 1, device=self.weight.device))].T

    def forward(self, query_len: int, past_len: int = 0) -> Tensor:
        """Return the biases [heads, query_len, past_len + query_len] of queries that follow `past_len` tokens."""
        device = self.weight.device
        queries = torch.arange(past_len, past_len + query_len, device=device)
        keys = torch.arange(past_len + query_len, device=device)
        return self.weight[self.buckets(keys - queries[:, None])].permute(2, 0, 1)


def sinusoid_of(table: Tensor) -> tuple[SinusoidLayout, int] | None:
    """Return the layout and the first position of a table of sinusoids; None for a trained table."""
    layouts: tuple[SinusoidLayout, ...] = ("halves", "halves_inclusive", "interleaved")
    length, width = table.shape
    for layout in layouts if width % 2 == 0 and width >= 4 else ():
        for offset in range(3):
            computed = sinusoidal_positions(length, width, layout, offset)
            if torch.allclose(computed, table, rtol=0, atol=_TABLE_TOLERANCE):
                return layout, offset
    return None


def usable_length(num_positions: int | None) -> int:
    """Return the maximum of tokens for computed positions.

    A table of thousands of positions is the default of a toolkit; caches of that length would be reserved for each row.
    """
    if num_positions is None or num_positions > _MAX_SINUSOIDAL_TOKENS:
        return _DEFAULT_TOKENS
    return num_positions
