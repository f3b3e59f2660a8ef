"""Outputs of a decoder step, and the part of them that belongs to one request."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from server.engine.kv_cache import RowIndices
from server.engine.model_runner import Candidates


@dataclass(slots=True)
class StepOutputs:
    """Outputs of the runner for one step. `logit_rows`, sorted, are the rows that `candidates.logits` has."""

    candidates: Candidates
    logit_rows: RowIndices


@dataclass(slots=True)
class RequestRows:
    """Outputs of one step for the beams of one request.

    `tokens` and `log_probs` [beams, num_candidates] are the candidates of the graph, `log_normalizer` [beams]. `logits`
    [beams, vocab] and `queries` [beams, heads * head_dim], of the alignment layer, are None unless requested.
    """

    tokens: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    log_normalizer: NDArray[np.float32]
    logits: NDArray[np.float32] | None
    queries: NDArray[np.floating] | None
