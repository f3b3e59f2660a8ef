"""Coverage penalty: an addition to the final score of a hypothesis."""

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.token_recorder import TokenRecorder
from server.interface.request import SentenceParams


class CoveragePenalty:
    """Coverage penalty of one request."""

    def __init__(self, params: SentenceParams, recorder: TokenRecorder) -> None:
        self._factor = params.options.coverage_penalty
        self._recorder = recorder

    @staticmethod
    def is_requested(params: SentenceParams) -> bool:
        """Whether these parameters have a coverage penalty."""
        return bool(params.options.coverage_penalty)

    def bonus(self, sequence: NDArray[np.int32]) -> float:
        """Return the addition to the score of a sequence [num_tokens] with its target prefix; never positive."""
        return self._factor * coverage(self._recorder.attention(sequence))


def coverage(attention: NDArray[np.float32]) -> float:
    """Return the coverage of the source: 0 if every source token has its share of attention, else negative.

    The sum over source tokens of log(min(attention from all target tokens, 1)), Wu et al. 2016, arXiv:1609.08144,
    equation 14 without its factor. `attention` [num_tokens, source_len] includes the end-of-sequence token. A source
    token without any attention adds nothing, as in CTranslate2.
    """
    received = attention.sum(axis=0)
    return float(np.log(np.minimum(received[received > 0], 1)).sum())
