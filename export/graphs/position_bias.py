"""The bias of self-attention by the distance of two tokens, as nodes of the graphs.

Each graph has a table of the biases of all distances. Its nodes are written as ONNX operators, so that export.int8
finds the table: the native operators read it instead of a bias for each pair of tokens.
"""

import torch
from torch import Tensor, nn

from model.positions import RelativePositionBias


class SourceBias(nn.Module):
    """Biases between all tokens of a source. `table` is [heads, 2 * max_tokens - 1], by the key's offset."""

    def __init__(self, bias: RelativePositionBias, max_tokens: int) -> None:
        super().__init__()
        self.table = nn.Parameter(bias.by_offset(1 - max_tokens, max_tokens - 1).detach().contiguous())
        self.max_tokens = max_tokens

    def forward(self, source_len: int) -> Tensor:
        """Return [1, heads, source_len, source_len]."""
        positions = torch.arange(source_len)
        offsets = positions - positions.unsqueeze(1) + (self.max_tokens - 1)
        return _gather(self.table, offsets).unsqueeze(0)


class StepBias(nn.Module):
    """Biases of one new token of each row on its cache. `table` is [heads, max_tokens], by the key's offset up to 0."""

    def __init__(self, bias: RelativePositionBias, max_tokens: int) -> None:
        super().__init__()
        self.table = nn.Parameter(bias.by_offset(1 - max_tokens, 0).detach().contiguous())
        self.max_tokens = max_tokens

    def forward(self, positions: Tensor, cache_len: int) -> Tensor:
        """Return [rows, heads, 1, cache_len]; `positions` [rows] are those of the new tokens."""
        offsets = torch.arange(cache_len) - positions.long().unsqueeze(1) + (self.max_tokens - 1)
        # Keys after the token are invisible; any entry of the table will do.
        offsets = offsets.clamp(min=0, max=self.max_tokens - 1)
        return _gather(self.table, offsets).permute(1, 0, 2).unsqueeze(2)


def _gather(table: Tensor, indices: Tensor) -> Tensor:
    if not torch.onnx.is_in_onnx_export():
        return table[:, indices]
    gathered: Tensor = torch.onnx.ops.symbolic(
        "Gather",
        (table, indices),
        attrs={"axis": 1},
        dtype=table.dtype,
        shape=(table.shape[0], *indices.shape),
    )
    return gathered
