"""Protocol of a model runner: encode sources, decode one step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from server.engine.kv_cache import CrossKeysValues, KVCache, RowIndices
from server.interface.request import TokenIds


@dataclass(frozen=True, slots=True)
class Candidates:
    """The best continuations of every row, best first.

    `tokens` [rows, num_candidates]; `log_probs` [rows, num_candidates] under the softmax over the whole vocabulary,
    NaN in a step without scores. `logits` [logit_rows, vocab], of the rows that were named, in their order, -inf where
    the model suppresses a token; a log-probability is a logit minus the row's `log_normalizer` [rows].
    `cross_queries` [rows, heads * head_dim], one for each layer, are there in a step that asked for them.
    """

    tokens: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    log_normalizer: NDArray[np.float32]
    logits: NDArray[np.float32]
    cross_queries: tuple[NDArray[np.floating], ...] = ()


NO_ROWS: RowIndices = np.empty(0, np.intp)


class ModelRunner(Protocol):
    """Runs a model for one engine. The engine owns which row belongs to whom; the runner owns the arithmetic."""

    cache: KVCache
    start_token: int
    """What a row's `previous_tokens` is before its first step."""
    attention_scale: float
    """What products of cross-attention's queries and keys are multiplied by."""

    def encode(self, sources: Sequence[TokenIds]) -> list[CrossKeysValues]:
        """Encode sentences, in their order, for `KVCache.write_source`."""
        ...

    def decode(
        self,
        num_rows: int,
        num_candidates: int,
        with_scores: bool,
        logit_rows: RowIndices = NO_ROWS,
        with_queries: bool = False,
    ) -> Candidates:
        """One step of the first `num_rows` rows, one token each. The arrays are valid until the next call.

        All logits are given of `logit_rows` only, and the queries of cross-attention only to who asks.
        Reads `previous_tokens`, `past_lengths` and `source_lengths` of the cache and adds one position to the past;
        raising `past_lengths` is up to the engine.
        """
        ...
