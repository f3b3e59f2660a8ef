"""Records of a request's decoder steps, for token details, the model's own log-probabilities, attention and coverage.

The outputs of a row depend on its prefix only. So records are kept by prefix: the prefixes of a hypothesis lead to the
records of its tokens, whatever beams the search took it through.

The graph's fused attention does not return its weights. Its queries and keys are available, so the weights are computed
here for the rows that need them, and other rows do not pay for a matrix of probabilities.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kernels.candidates import top_k
from server.engine.model_runner import RequestRows
from server.interface.request import FinishReason, Hypothesis, SentenceParams, TokenDetails


def attention_weights(queries: NDArray[np.floating], keys: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Return softmax(queries keys^T * scale), [tokens, heads, source_len]; the weights of each head sum to 1.

    `queries` [tokens, heads * head_dim], `keys` [heads, source_len, head_dim].
    """
    num_heads, _, head_dim = keys.shape
    per_head = queries.astype(np.float32).reshape(len(queries), num_heads, head_dim, 1)
    products = (keys @ per_head)[..., 0] * np.float32(scale)
    weights: NDArray[np.float32] = np.exp(products - products.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights


class CrossAttention:
    """Attention of one request's target tokens to its source, in one decoder layer, averaged over heads.

    Computed for hypotheses at their end: most prefixes of a search lead to none.
    """

    def __init__(self, params: SentenceParams, scale: float) -> None:
        self.layer = params.alignment_layer
        self._heads = list(params.options.alignment_heads)
        self._scale = scale
        self._keys = np.empty((0, 0, 0), np.float32)

    @property
    def source_len(self) -> int:
        """Number of source tokens, known once the keys are."""
        return self._keys.shape[1]

    def set_keys(self, keys: NDArray[np.float32]) -> None:
        """Keep the source's keys [heads, source_len, head_dim] of the layer."""
        self._keys = keys

    def weights(self, queries: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the mean weights [tokens, source_len] of the selected heads for queries [tokens, heads * head_dim]."""
        weights = attention_weights(queries, self._keys, self._scale)
        mean: NDArray[np.float32] = (weights[:, self._heads] if self._heads else weights).mean(axis=1)
        return mean


@dataclass(slots=True)
class TokenRecord:
    """Outputs of the model after one prefix.

    `candidates` are tokens and the model's log-probabilities of them, once for each time that the prefix was decoded:
    samples may have drawn different tokens. A record for attention only has none. `queries` [heads * head_dim] of
    cross-attention are None unless requested; `alternatives` are the most likely tokens, best first.
    """

    candidates: list[tuple[NDArray[np.int64], NDArray[np.float32]]]
    queries: NDArray[np.floating] | None
    alternatives: list[tuple[int, float]]

    def log_prob(self, token: int) -> float:
        """Return the log-probability of a token; minus infinity if it was never possible."""
        return max((float(log_probs[tokens == token].max(initial=-np.inf)) for tokens, log_probs in self.candidates))


class TokenRecorder:
    """Records of one request. Sequences [num_tokens] begin with its target prefix and lack the start token."""

    def __init__(self, params: SentenceParams, attention: CrossAttention | None, end_token: int) -> None:
        self._records_token_scores = params.options.return_token_scores or bool(params.forced_target)
        self._num_alternatives = params.options.num_token_alternatives
        self._returns_attention = params.return_attention
        self._reads_candidates = self.reads_candidates(params)
        self._prefix_len = len(params.target_prefix)
        self._attention = attention
        self._end_token = end_token
        self._records: dict[bytes, TokenRecord] = {}

    @staticmethod
    def is_requested(params: SentenceParams) -> bool:
        """Whether answers have details, or their log-probability differs from what the search adds up."""
        return params.return_attention or TokenRecorder.reads_candidates(params)

    @staticmethod
    def reads_candidates(params: SentenceParams) -> bool:
        """Whether records need more of a step than the queries of cross-attention."""
        return bool(
            params.options.return_token_scores
            or params.forced_target
            or params.options.num_token_alternatives
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
        for beam, sequence in enumerate(sequences):
            candidates = (tokens[beam], log_probs[beam])
            if (earlier := self._records.get(prefix := sequence.tobytes())) is not None:
                earlier.candidates.append(candidates)
                continue
            queries = None if rows.queries is None else rows.queries[beam]
            self._records[prefix] = TokenRecord([candidates], queries, alternatives[beam])

    def record_queries(self, sequence: NDArray[np.int32], queries: NDArray[np.floating]) -> None:
        """Record the queries [heads * head_dim] of cross-attention after a prefix [length], for attention only."""
        self._records[sequence.tobytes()] = TokenRecord([], queries, [])

    def log_probabilities(self, sequence: NDArray[np.int32], start: int = 0) -> list[float]:
        """Return the model's log-probability of each token from index `start` on."""
        records = self._records_of(sequence)[start:]
        return [record.log_prob(token) for token, record in zip(sequence[start:].tolist(), records, strict=True)]

    def attention(self, sequence: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the attention [num_tokens, source_len] of each token, which must have been requested."""
        assert self._attention is not None
        queries = [record.queries for record in self._records_of(sequence) if record.queries is not None]
        if not queries:
            return np.empty((0, self._attention.source_len), np.float32)
        return self._attention.weights(np.stack(queries))

    def annotate(self, hypothesis: Hypothesis) -> Hypothesis:
        """Return a hypothesis, with its target prefix, with the model's own log-probability and its details."""
        tokens = np.array(hypothesis.token_ids, np.int32)
        sequence = tokens
        if hypothesis.finish_reason is FinishReason.STOP:  # an end that a limit forces costs nothing and has no details
            sequence = np.array([*hypothesis.token_ids, self._end_token], np.int32)
        details = self.details(tokens, sequence)
        if not self._reads_candidates:
            return replace(hypothesis, details=details)
        generated = self.log_probabilities(sequence, self._prefix_len)
        return replace(hypothesis, log_probability=float(np.sum(generated)), details=details)

    def details(self, tokens: NDArray[np.int32], sequence: NDArray[np.int32]) -> TokenDetails | None:
        """Return the requested details of an answer; `sequence` has its end-of-sequence token if it was generated."""
        if not (self._records_token_scores or self._num_alternatives or self._returns_attention):
            return None
        return TokenDetails(
            self.log_probabilities(sequence) if self._records_token_scores else [],
            [record.alternatives for record in self._records_of(sequence)] if self._num_alternatives else [],
            self.attention(tokens) if self._returns_attention else None,
        )

    def _records_of(self, sequence: NDArray[np.int32]) -> list[TokenRecord]:
        return [self._records[sequence[:length].tobytes()] for length in range(sequence.size)]


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
