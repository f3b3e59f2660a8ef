"""Forced target tokens of a request: a prefix of every answer, or a translation to score."""

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.request_rows import RequestRows
from server.engine.decoding.token_recorder import CoveragePenalty, TokenRecorder
from server.interface.request import FinishReason, Hypothesis, SentenceParams


class ForcedTokens:
    """Forced tokens of one request, decoded one a step before its search begins."""

    def __init__(self, params: SentenceParams) -> None:
        self.sequence = np.array(params.forced_target or params.target_prefix, np.int32)
        self._num_free = int(params.first_token is not None)
        self._length_penalty = params.options.length_penalty

    @staticmethod
    def is_requested(params: SentenceParams) -> bool:
        """Whether these parameters have forced tokens."""
        return bool(params.target_prefix or params.forced_target)

    def candidate(self, num_decoded: int, rows: RequestRows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the next forced token [1, 1] and its log-probability, NaN in a step without logits."""
        token = self.sequence[num_decoded : num_decoded + 1].astype(np.int64)[None]
        log_prob = np.full((1, 1), np.nan, np.float32)
        if rows.logits is not None:
            log_prob = rows.logits[:, token[0]] - rows.log_normalizer[:, None]
        return token, log_prob

    def scored(self, recorder: TokenRecorder, coverage: CoveragePenalty | None) -> Hypothesis:
        """Return the forced translation, whose last token is the end of the sequence, with its score."""
        log_probability = float(np.sum(recorder.log_probabilities(self.sequence)[self._num_free :]))
        score = log_probability / self.sequence.size**self._length_penalty
        if coverage is not None:
            score += coverage.bonus(self.sequence)
        tokens = self.sequence[:-1]
        details = recorder.details(tokens, self.sequence)
        return Hypothesis(tokens.tolist(), log_probability, score, FinishReason.STOP, details)
