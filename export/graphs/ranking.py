"""The end of a decoder step: the best tokens of each row, and the normaliser of their log-probabilities.

TopK over a whole vocabulary is slow: it reads every logit with a comparison and a branch. A vectorised ReduceMax finds
the largest logit of each block of neighbours. The k best tokens are in the k blocks with the largest maxima, so TopK
reads k blocks instead of the vocabulary.

Graphs written node by node share `add_best_tokens` and `add_log_normalizer`; `BlockedVocabulary.top_k` is the same in a
traced module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from export.graphs.onnx_nodes import FunctionBody


@dataclass(frozen=True, slots=True)
class Ranking:
    """Constants of the operator `BestTokens`: `bias` and `mask` [tokens, padded to whole blocks].

    `weight` is the name of the output projection; `mask` is minus infinity for suppressed tokens.
    """

    weight: str
    bias: NDArray[np.float32]
    mask: NDArray[np.float32]
    block_size: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class BlockedVocabulary:
    """A vocabulary of `num_blocks` blocks of `block_size` tokens; the last block is padded."""

    num_tokens: int
    block_size: int

    @classmethod
    def of(cls, num_tokens: int) -> "BlockedVocabulary":
        """Return blocks of a size that minimises the work for four candidates, between greedy search and wide beams."""
        return cls(num_tokens, max(-(-isqrt(num_tokens // 4) // 16) * 16, 16))

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return -(-self.num_tokens // self.block_size)

    def pad(self, per_token: Tensor, value: float) -> Tensor:
        """Return `per_token` [num_tokens, ...] with `value` for the padding of the last block."""
        missing = self.num_blocks * self.block_size - self.num_tokens
        return torch.cat([per_token, per_token.new_full((missing, *per_token.shape[1:]), value)])

    def top_k(self, logits: Tensor, num_candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best `num_candidates` of `logits` [rows, padded tokens], best first, and their tokens (int64)."""
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
        # In a row of NaN, the result is arbitrary; it must be a valid token, or the next step would fail for all rows.
        return best_logits, tokens.clamp(max=self.num_tokens - 1)


def add_best_tokens(
    body: FunctionBody, num_best_blocks: str, num_best: str, chosen_shape: str, block_size: str, logits: str
) -> None:
    """Add the nodes that find the best tokens of a vocabulary in blocks.

    They read `blocks` [rows, num_blocks, block_size], the maxima `largest` [rows, num_blocks] and the constants
    `last_axis` and `last_token`, and write `logits` and `tokens` (int64), both [rows, num_best], best first.
    `chosen_shape` is the shape [rows, num_best_blocks * block_size]. All arguments are names.
    """
    body.add("TopK", ["largest", num_best_blocks], ["best_of_blocks", "best_blocks"])
    body.add("Unsqueeze", ["best_blocks", "last_axis"], "block_indices")
    body.add("GatherND", ["blocks", "block_indices"], "chosen_blocks", batch_dims=1)
    body.add("Reshape", ["chosen_blocks", chosen_shape], "chosen")
    body.add("TopK", ["chosen", num_best], [logits, "places"])
    body.add("Div", ["places", block_size], "ranks")
    body.add("GatherElements", ["best_blocks", "ranks"], "found_blocks", axis=1)
    body.add("Mul", ["found_blocks", block_size], "block_starts")
    body.add("Mod", ["places", block_size], "in_block")
    body.add("Add", ["block_starts", "in_block"], "found")
    # In a row of NaN, the result is arbitrary; it must be a valid token, or the next step would fail for all rows.
    body.add("Min", ["found", "last_token"], "tokens")


def add_log_normalizer(body: FunctionBody, logits: str, tokens: str, best_logits: str | None, output: str) -> None:
    """Add the nodes of `output` [rows, 1]: the logarithm of the sum of the exponentials of `logits`.

    It is the best logit minus its log-probability: ONNX Runtime's LogSoftmax is vectorised, its ReduceLogSumExp several
    times slower. `best_logits` are the logits of `tokens`, best first; None reads them from `logits`. All arguments are
    names; the constants are `first` 0, `behind_first` 1 and `last_axis` -1.
    """
    body.add("LogSoftmax", [logits], "log_probs", axis=-1)
    body.add("Slice", [tokens, "first", "behind_first", "last_axis"], "best_token")
    if best_logits is None:
        body.add("GatherElements", [logits, "best_token"], "best_logit", axis=1)
    else:
        body.add("Slice", [best_logits, "first", "behind_first", "last_axis"], "best_logit")
    body.add("GatherElements", ["log_probs", "best_token"], "best_log_prob", axis=1)
    body.add("Sub", ["best_logit", "best_log_prob"], output)


# The tracer requires the number of candidates, which is known only at run time. Operators that would store the number
# in the graph are therefore written as ONNX operators.
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
