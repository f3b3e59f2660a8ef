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

    `tokens` and `log_probs` [beams, num_candidates] are the candidates of the graph, `log_normalizer` [beams].
    `step_logits` [logit_rows, vocab] are those of the whole step, of which `logit_places` [beams] belong to this
    request, and `queries` [beams, heads * head_dim] those of the alignment layer; None unless requested.
    """

    tokens: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    log_normalizer: NDArray[np.float32]
    step_logits: NDArray[np.float32] | None
    logit_places: RowIndices
    queries: NDArray[np.floating] | None

    @property
    def logits(self) -> NDArray[np.float32] | None:
        """A copy of whole rows of logits [beams, vocab]; None unless requested."""
        return None if self.step_logits is None else self.step_logits[self.logit_places]

    def log_probs_of(self, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the log-probabilities [beams, tokens] of some tokens of the vocabulary. Logits were requested."""
        assert self.step_logits is not None
        logits: NDArray[np.float32] = self.step_logits[self.logit_places[:, None], tokens]
        return logits - self.log_normalizer[:, None]
