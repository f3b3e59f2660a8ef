"""Positions of tokens: sinusoidal, computed for any length, and learned, from a table."""

import torch
from torch import Tensor, nn

from model.config import SinusoidLayout


def sinusoidal_positions(length: int, d_model: int, layout: SinusoidLayout, offset: int = 0) -> Tensor:
    """Return the sinusoids of positions `offset` to `offset + length - 1` (Vaswani et al. 2017, section 3.5).

    Returns float32 [length, d_model]: sin(position / 10000 ** (2 i / d_model)) and the cosine of the same angle, for
    i = 0 to d_model / 2 - 1. "interleaved" puts each cosine after its sine, as in the paper; "halves" puts all sines
    before all cosines, as in Marian. Angles are float64, so that distant positions are exact, too.
    """
    positions = torch.arange(offset, offset + length, dtype=torch.float64)
    wavelengths = 10000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angles = positions[:, None] / wavelengths  # [length, d_model / 2]
    sines, cosines = angles.sin(), angles.cos()
    if layout == "halves":
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
