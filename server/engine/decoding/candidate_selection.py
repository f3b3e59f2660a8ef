"""Selection of candidates from whole rows of logits, for requests with decoding options."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.top_k import top_k
from server.engine.decoding.logits_processors import processors_for
from server.engine.decoding.request_rows import RequestRows
from server.engine.decoding.sampler import draw
from server.interface.request import SentenceParams


class Selected(NamedTuple):
    """Candidates [beams, num_candidates], best first.

    `search_log_probs` are what the search adds up, `log_probs` the model's own log-probabilities.
    """

    tokens: NDArray[np.int64]
    search_log_probs: NDArray[np.float32]
    log_probs: NDArray[np.float32]


class CandidateSelection:
    """Turns the scores of each row of one request into the candidates of its search."""

    def __init__(self, params: SentenceParams, end_token: int) -> None:
        self.params = params
        self.needs_logits = self.is_requested(params)
        self._end_token = end_token
        self._processors = processors_for(params, end_token)
        required = {token for group in params.required_groups for phrase in group for token in phrase}
        self._required = np.array(sorted(required), np.int64)
        self._prefix_len = len(params.target_prefix)
        self._is_beam = params.sampling is None and params.beam_size > 1
        is_plain = self._is_beam and not self._processors and not params.options.return_alternatives
        self.takes_graph_candidates = bool(required) and is_plain
        """Whether the candidates of the graph and the required tokens are enough, whatever the prefixes are."""

    @staticmethod
    def is_requested(params: SentenceParams) -> bool:
        """Whether candidates are selected from logits, because those of the graph are not enough."""
        return bool(
            params.sampling
            or params.options.return_alternatives
            or params.required_phrases
            or params.required_terms
            or params.options.num_token_alternatives
            or processors_for(params, end_token=0)
        )

    def select(self, sequences: NDArray[np.int32], num_candidates: int, rows: RequestRows) -> Selected:
        """Return candidates after the prefixes [beams, length]; those of the graph if they are enough."""
        if rows.step_logits is None:
            return Selected(rows.tokens, rows.log_probs, rows.log_probs)
        num_best = num_candidates - self._required.size
        if self.takes_graph_candidates and num_best <= rows.tokens.shape[1]:
            best_tokens, best = rows.tokens[:, :num_best], rows.log_probs[:, :num_best]
            tokens, log_probs = self._with_required(best_tokens, best, rows.log_probs_of(self._required))
            return Selected(tokens, log_probs, log_probs)
        logits, log_normalizer = rows.logits, rows.log_normalizer[:, None]
        assert logits is not None
        # Beams are ranked by log-probabilities after the processors; other searches add up the model's own.
        scores = logits - log_normalizer if self._is_beam else logits.copy()
        for processor in self._processors:
            processor.apply(scores, sequences)
        if not self._is_beam:
            # A row without a possible token ends. A beam request continues its other beams instead.
            scores[np.isneginf(scores.max(axis=1)), self._end_token] = 0.0
        tokens, selected_scores = self._choose(scores, sequences.shape[1], num_candidates)
        log_probs = np.take_along_axis(logits, tokens, axis=1) - log_normalizer
        return Selected(tokens, selected_scores if self._is_beam else log_probs, log_probs)

    def _choose(
        self, scores: NDArray[np.float32], length: int, num_candidates: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if self.params.sampling is not None:
            drawn = [draw(row, self.params.sampling, sample, length) for sample, row in enumerate(scores)]
            tokens = np.array(drawn, np.int64)[:, None]
        elif self.params.options.return_alternatives and length == self._prefix_len:
            scores[0, self._end_token] = -np.inf
            first_tokens, _ = top_k(scores[:1], len(scores))
            tokens = first_tokens.T
        elif self._required.size:
            best_tokens, best = top_k(scores, num_candidates - self._required.size)
            return self._with_required(best_tokens, best, scores[:, self._required])
        else:
            return top_k(scores, num_candidates)
        return tokens, np.take_along_axis(scores, tokens, axis=1)

    def _with_required(
        self, best_tokens: NDArray[np.int64], best: NDArray[np.float32], required: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the best candidates of each row, followed by all tokens of the required phrases, which have scores."""
        num_best = best_tokens.shape[1]
        tokens = np.empty((len(best_tokens), num_best + self._required.size), np.int64)
        tokens[:, :num_best], tokens[:, num_best:] = best_tokens, self._required
        scores = np.empty(tokens.shape, np.float32)
        scores[:, :num_best], scores[:, num_best:] = best, required
        is_duplicate = (best_tokens[:, None] == self._required[:, None]).any(axis=2)
        scores[:, num_best:][is_duplicate] = -np.inf
        return tokens, scores
