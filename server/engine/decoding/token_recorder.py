"""Records of a request's decoder steps, for token details and the model's own log-probabilities.

The outputs of a row depend on its prefix only. So records are kept by prefix: the prefixes of a hypothesis lead to the
records of its tokens, whatever beams the search took it through.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernels.top_k import top_k
from server.engine.decoding.cross_attention import CrossAttention
from server.engine.decoding.request_rows import RequestRows
from server.interface.request import FinishReason, Hypothesis, SentenceParams, TokenDetails


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """Outputs of the model after one prefix.

    `log_probs` are the model's, of the candidate tokens; `attention` [source_len] is None unless requested;
    `alternatives` are the most likely tokens, best first.
    """

    log_probs: dict[int, float]
    attention: NDArray[np.float32] | None
    alternatives: list[tuple[int, float]]


class TokenRecorder:
    """Records of one request. Sequences [num_tokens] begin with its target prefix and lack the start token."""

    def __init__(self, params: SentenceParams, attention: CrossAttention | None, end_token: int) -> None:
        self._records_token_scores = params.options.return_token_scores or bool(params.forced_target)
        self._num_alternatives = params.options.num_token_alternatives
        self._returns_attention = params.return_attention
        self._prefix_len = len(params.target_prefix)
        self._attention = attention
        self._end_token = end_token
        self._records: dict[bytes, TokenRecord] = {}

    @staticmethod
    def is_requested(params: SentenceParams) -> bool:
        """Whether answers have details, or their log-probability differs from what the search adds up."""
        return bool(
            params.options.return_token_scores
            or params.forced_target
            or params.options.num_token_alternatives
            or params.return_attention
            or params.options.repetition_penalty != 1.0
            or params.options.num_beam_groups > 1
        )

    @property
    def records_candidates(self) -> bool:
        """Whether records need logits even while tokens are forced."""
        return self._records_token_scores or self._num_alternatives > 0

    def record(
        self,
        sequences: NDArray[np.int32],
        tokens: NDArray[np.int64],
        log_probs: NDArray[np.float32],
        rows: RequestRows,
    ) -> None:
        """Record a step: candidates [beams, num_candidates] after the prefixes [beams, length]."""
        alternatives: list[list[tuple[int, float]]] = [[] for _ in sequences]
        if self._num_alternatives and rows.logits is not None:
            best, logits = top_k(rows.logits, self._num_alternatives)
            log_probs_of_best = (logits - rows.log_normalizer[:, None]).tolist()
            alternatives = [
                list(zip(*each, strict=True)) for each in zip(best.tolist(), log_probs_of_best, strict=True)
            ]
        candidates = zip(tokens.tolist(), log_probs.tolist(), strict=True)
        for beam, (sequence, each) in enumerate(zip(sequences, candidates, strict=True)):
            possible = {token: log_prob for token, log_prob in zip(*each, strict=True) if log_prob != -np.inf}
            attention = None
            if self._attention is not None and rows.queries is not None:
                attention = self._attention.weights(rows.queries[beam])
            self._write(sequence, TokenRecord(possible, attention, alternatives[beam]))

    def log_probabilities(self, sequence: NDArray[np.int32], start: int = 0) -> list[float]:
        """Return the model's log-probability of each token from index `start` on."""
        records = self._records_of(sequence)[start:]
        return [
            record.log_probs.get(token, -np.inf)
            for token, record in zip(sequence[start:].tolist(), records, strict=True)
        ]

    def attention(self, sequence: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the attention [num_tokens, source_len] of each token, which must have been requested."""
        assert self._attention is not None
        weights = [record.attention for record in self._records_of(sequence) if record.attention is not None]
        return np.array(weights, np.float32).reshape(-1, self._attention.source_len)

    def annotate(self, hypothesis: Hypothesis) -> Hypothesis:
        """Return a hypothesis, with its target prefix, with the model's own log-probability and its details."""
        tokens = np.array(hypothesis.token_ids, np.int32)
        sequence = tokens
        if hypothesis.finish_reason is FinishReason.STOP:  # an end that a limit forces costs nothing and has no details
            sequence = np.array([*hypothesis.token_ids, self._end_token], np.int32)
        generated = self.log_probabilities(sequence, self._prefix_len)
        return replace(hypothesis, log_probability=float(np.sum(generated)), details=self.details(tokens, sequence))

    def details(self, tokens: NDArray[np.int32], sequence: NDArray[np.int32]) -> TokenDetails | None:
        """Return the requested details of an answer; `sequence` has its end-of-sequence token if it was generated."""
        if not (self._records_token_scores or self._num_alternatives or self._returns_attention):
            return None
        return TokenDetails(
            self.log_probabilities(sequence) if self._records_token_scores else [],
            [record.alternatives for record in self._records_of(sequence)] if self._num_alternatives else [],
            self.attention(tokens) if self._returns_attention else None,
        )

    def _write(self, prefix: NDArray[np.int32], record: TokenRecord) -> None:
        """Keep a record. Samples with the same prefix may have drawn different tokens: their records are merged."""
        earlier = self._records.setdefault(prefix.tobytes(), record)
        if earlier is not record:
            earlier.log_probs.update(record.log_probs)

    def _records_of(self, sequence: NDArray[np.int32]) -> list[TokenRecord]:
        return [self._records[sequence[:length].tobytes()] for length in range(sequence.size)]
