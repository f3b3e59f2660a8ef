"""The best tokens of each row, found in two rounds.

TopK over a whole vocabulary is slow: it reads every logit with a comparison and a branch. The largest logit of each
block of neighbours is found by a vectorised ReduceMax; the k best tokens can only lie in the k blocks that have the
largest ones. So the second round looks at k blocks instead of the vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Ranking:
    """What `BestTokens` knows of the tokens: `bias` and `mask` [tokens, filled up to whole blocks].

    `weight` names the output projection; `mask` is minus infinity for tokens that must not be generated.
    """

    weight: str
    bias: NDArray[np.float32]
    mask: NDArray[np.float32]
    block_size: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class BlockedVocabulary:
    """A vocabulary cut into `num_blocks` blocks of `block_size` tokens; the last block is filled up."""

    num_tokens: int
    block_size: int

    @classmethod
    def of(cls, num_tokens: int) -> "BlockedVocabulary":
        """Both rounds have least to look at when four candidates are wanted (a guess between greedy and wide beams)."""
        return cls(num_tokens, max(-(-isqrt(num_tokens // 4) // 16) * 16, 16))

    @property
    def num_blocks(self) -> int:
        """Blocks of the vocabulary."""
        return -(-self.num_tokens // self.block_size)

    def pad(self, per_token: Tensor, value: float) -> Tensor:
        """`per_token` [num_tokens, ...] with `value` for the tokens that fill up the last block."""
        missing = self.num_blocks * self.block_size - self.num_tokens
        return torch.cat([per_token, per_token.new_full((missing, *per_token.shape[1:]), value)])

    def top_k(self, logits: Tensor, num_candidates: Tensor) -> tuple[Tensor, Tensor]:
        """The best `num_candidates` of `logits` [rows, padded tokens], best first, and their tokens (int64)."""
        if not torch.onnx.is_in_onnx_export():
            best = torch.topk(logits, int(num_candidates), dim=-1)
            return best.values, best.indices
        rows = logits.shape[0]
        largest = logits.reshape(rows, self.num_blocks, self.block_size).amax(dim=-1)
        _, best_blocks = _top_k(largest, torch.minimum(num_candidates, torch.tensor([self.num_blocks])))
        blocks = logits.reshape(-1, self.block_size)  # of all rows
        row_starts = (torch.arange(rows) * self.num_blocks).unsqueeze(1)
        chosen = _operator("Gather", (blocks, best_blocks + row_starts), (rows, _SOME, self.block_size))
        chosen = _operator("Reshape", (chosen, torch.tensor([0, -1])), (rows, _SOME * self.block_size))
        best_logits, places = _top_k(chosen, num_candidates)
        size = torch.tensor(self.block_size)
        ranks = _operator("Div", (places, size), (rows, _SOME))
        found = _operator("GatherElements", (best_blocks, ranks), (rows, _SOME), {"axis": 1})
        tokens = found * self.block_size + _operator("Mod", (places, size), (rows, _SOME))
        # Of a row of NaN anything is found; it must at least be a token, or the next step would fail everybody's.
        return best_logits, tokens.clamp(max=self.num_tokens - 1)


# The tracer wants to know how many candidates there are, which is known when the graph runs. Whatever operator would
# write the number down is therefore given as it is in ONNX.
_SOME = 2


def _top_k(values: Tensor, num_best: Tensor) -> tuple[Tensor, Tensor]:
    found = torch.onnx.ops.symbolic_multi_out(
        "TopK",
        (values, num_best),
        attrs={"axis": -1, "largest": 1, "sorted": 1},
        dtypes=(torch.float32, torch.int64),
        shapes=((values.shape[0], _SOME), (values.shape[0], _SOME)),
    )
    return found[0], found[1]


def _operator(
    name: str, inputs: tuple[Tensor, ...], shape: tuple[int, ...], attributes: Mapping[str, int] | None = None
) -> Tensor:
    output: Tensor = torch.onnx.ops.symbolic(name, inputs, {**(attributes or {})}, dtype=inputs[0].dtype, shape=shape)
    return output
