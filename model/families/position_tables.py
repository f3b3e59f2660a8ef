"""Tables of positions in a checkpoint: computed sinusoids or trained vectors."""

from typing import Final

import torch
from torch import Tensor

from model.config import SinusoidLayout
from model.positions import sinusoidal_positions

# Tables are float16 in some models.
_TABLE_TOLERANCE: Final = 2e-3
_MAX_SINUSOIDAL_TOKENS: Final = 1024
_DEFAULT_TOKENS: Final = 512


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
