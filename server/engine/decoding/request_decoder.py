"""Decoding options of one request, applied between the model runner and its search.

A search chooses among a few candidates of each row. A `RequestDecoder` replaces them with candidates selected from
whole rows of logits, where an option changes or forbids tokens, and records what the answer needs. Requests without
such options have none.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.candidate_selection import CandidateSelection
from server.engine.decoding.constrained import ConstrainedBeamSearch
from server.engine.decoding.forced_search import ForcedSearch
from server.engine.decoding.search import EndBonus, Search
from server.engine.decoding.token_recorder import CoveragePenalty, CrossAttention, TokenRecorder
from server.engine.kv_cache import RowIndices
from server.engine.model_runner import NO_ROWS, Candidates, RequestRows, StepOutputs
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


_NO_PREFIXES = np.empty((0, 0), np.int32)


class RequestDecoder:
    """Composes selection, forced tokens, records and coverage for one request. An exception is kept in `failure`."""

    def __init__(self, params: SentenceParams, end_token: int, attention_scale: float) -> None:
        self.params = params
        self.failure: Exception | None = None
        has_coverage = CoveragePenalty.is_requested(params)
        self.attention = CrossAttention(params, attention_scale) if has_coverage or params.return_attention else None
        self._selection = CandidateSelection(params, end_token)
        self._forced = ForcedTokens(params)
        self._recorder: TokenRecorder | None = None
        self._coverage: CoveragePenalty | None = None
        if has_coverage or TokenRecorder.is_requested(params):
            self._recorder = TokenRecorder(params, self.attention, end_token)
            self._coverage = CoveragePenalty(params, self._recorder) if has_coverage else None
        self.replaces_candidates = CandidateSelection.is_requested(params) or TokenRecorder.reads_candidates(params)
        """Whether a search gets other candidates than those of the graph, or its steps are recorded with them."""
        has_first_token = params.first_token is not None
        takes_prefixes = self._recorder is not None or has_first_token
        self._reads_prefixes = takes_prefixes or not self._selection.takes_graph_candidates

    @classmethod
    def of(cls, params: SentenceParams, end_token: int, attention_scale: float) -> "RequestDecoder | None":
        """Return the decoder of a request, or None if its parameters need none."""
        return cls(params, end_token, attention_scale) if _needs_decoder(params) else None

    @property
    def has_forced_tokens(self) -> bool:
        """Whether tokens are forced before the search begins."""
        return self._forced.sequence.size > 0

    @property
    def forced_tokens(self) -> NDArray[np.int32]:
        """Tokens that are forced before the search begins."""
        return self._forced.sequence

    @property
    def reads_all_tokens(self) -> bool:
        """Whether a shortlist could lack tokens that the request needs."""
        return self.has_forced_tokens or self._selection.needs_logits

    @property
    def end_bonus(self) -> EndBonus | None:
        """Addition to the score of a complete hypothesis, if any."""
        return None if self._coverage is None else self._coverage_bonus

    def needs_logits(self, is_forced: bool) -> bool:
        """Whether the next step must return whole rows of logits; `is_forced` while tokens are forced."""
        if is_forced:
            return self._recorder is not None and self._recorder.records_candidates
        return self._selection.needs_logits

    def replace_candidates(
        self,
        search: Search,
        index: int,
        outputs: StepOutputs,
        rows: RowIndices,
        tokens: NDArray[np.int64],
        log_probs: NDArray[np.float32],
    ) -> None:
        """Overwrite the candidates [beams, num_candidates] that the search receives for its request at `index`.

        `rows` [beams] are those of the request. An exception ends this request only: it is kept in `failure`.
        """
        try:
            if isinstance(search, ForcedSearch):
                request_rows = self._request_rows(outputs, rows, is_forced=True)
                tokens[:], log_probs[:] = self.force_token(search.num_decoded(index), request_rows)
                return
            request_rows = self._request_rows(outputs, rows, is_forced=False)
            num_wanted = search.num_candidates
            # A processor may forbid what the graph found.
            if isinstance(search, ConstrainedBeamSearch) and self._selection.takes_graph_candidates:
                num_wanted = search.num_wanted(index, request_rows.tokens)
            prefixes = search.prefixes(index) if self._reads_prefixes else _NO_PREFIXES
            selected, selected_log_probs = self.select(prefixes, num_wanted, request_rows)
            num_selected = min(selected.shape[1], tokens.shape[1])
            tokens[:, :num_selected] = selected[:, :num_selected]
            log_probs[:, :num_selected] = selected_log_probs[:, :num_selected]
            tokens[:, num_selected:], log_probs[:, num_selected:] = 0, -np.inf
        except Exception as error:  # noqa: BLE001 - an unexpected error must not end other requests
            self.failure = error

    def force_token(self, num_decoded: int, rows: RequestRows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the next forced token [1, 1] as the only candidate, and its log-probability."""
        token, log_prob = self._forced.candidate(num_decoded, rows)
        if self._recorder is not None:
            self._recorder.record(self._forced.sequence[None, :num_decoded], token, log_prob, rows)
        return token, log_prob

    def observe(self, prefixes: NDArray[np.int32], rows: RowIndices, candidates: Candidates) -> None:
        """Record the attention of a step after the tokens [beams, length] of a search that keeps its candidates.

        `rows` [beams] are those of the request. An exception ends this request only: it is kept in `failure`.
        """
        if self._recorder is None or self.attention is None:
            return
        try:
            queries = candidates.cross_queries[self.attention.layer][rows]
            for sequence, of_beam in zip(self._sequences(prefixes), queries, strict=True):
                self._recorder.record_queries(sequence, of_beam)
        except Exception as error:  # noqa: BLE001 - an unexpected error must not end other requests
            self.failure = error

    def record_forced(self, start: int, num_tokens: int, candidates: Candidates) -> None:
        """Record forced tokens from the outputs of a run with a row for each; the first of them has index `start`.

        An exception ends this request only: it is kept in `failure`.
        """
        if self._recorder is None:
            return
        outputs = StepOutputs(candidates, np.arange(num_tokens))
        try:
            for place, row in enumerate(outputs.logit_rows[:, None]):
                if self.replaces_candidates:
                    self.force_token(start + place, self._request_rows(outputs, row, is_forced=True))
                elif self.attention is not None:
                    queries = candidates.cross_queries[self.attention.layer][place].copy()
                    self._recorder.record_queries(self.forced_tokens[: start + place], queries)
        except Exception as error:  # noqa: BLE001 - an unexpected error must not end other requests
            self.failure = error

    def _sequences(self, prefixes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the tokens [beams, length] of a search behind the forced ones."""
        forced = self._forced.sequence
        if not forced.size:
            return prefixes
        return np.concatenate([np.broadcast_to(forced, (len(prefixes), forced.size)), prefixes], axis=1)

    def select(
        self, prefixes: NDArray[np.int32], num_candidates: int, rows: RequestRows
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return candidates [beams, num_candidates], best first, after the tokens [beams, length] of the search."""
        if not self._reads_prefixes:
            selected = self._selection.select(prefixes, num_candidates, rows)
            return selected.tokens, selected.search_log_probs
        sequences = self._sequences(prefixes)
        if self.params.first_token is not None and not sequences.size:
            return self._first_token(sequences, rows)
        selected = self._selection.select(sequences, num_candidates, rows)
        if self._recorder is not None:
            self._recorder.record(sequences, selected.tokens, selected.log_probs, rows)
        return selected.tokens, selected.search_log_probs

    def _first_token(
        self, sequences: NDArray[np.int32], rows: RequestRows
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the first token, at no cost, as the only candidate of each beam."""
        tokens = np.full((len(sequences), 1), self.params.first_token, np.int64)
        log_probs = np.zeros(tokens.shape, np.float32)
        if self._recorder is not None:
            self._recorder.record(sequences, tokens, log_probs, rows)
        return tokens, log_probs

    def annotate(self, hypothesis: Hypothesis) -> Hypothesis:
        """Return a hypothesis of the search with its target prefix, own log-probability and token details."""
        with_prefix = replace(hypothesis, token_ids=[*self.params.target_prefix, *hypothesis.token_ids])
        return with_prefix if self._recorder is None else self._recorder.annotate(with_prefix)

    def scored(self) -> Hypothesis:
        """Return the forced translation with its score, after its last token."""
        assert self._recorder is not None
        return self._forced.scored(self._recorder, self._coverage)

    def _request_rows(
        self,
        outputs: StepOutputs,
        rows: RowIndices,
        *,
        is_forced: bool,
    ) -> RequestRows:
        candidates, needs_logits = outputs.candidates, self.needs_logits(is_forced)
        return RequestRows(
            candidates.tokens[rows],
            candidates.log_probs[rows],
            candidates.log_normalizer[rows],
            candidates.logits if needs_logits else None,
            np.searchsorted(outputs.logit_rows, rows) if needs_logits else NO_ROWS,
            None if self.attention is None else candidates.cross_queries[self.attention.layer][rows],
        )

    def _coverage_bonus(self, tokens: list[int]) -> float:
        assert self._coverage is not None
        return self._coverage.bonus(np.array([*self.params.target_prefix, *tokens], np.int32))


@lru_cache(maxsize=64)  # one value serves many sentences
def _needs_decoder(params: SentenceParams) -> bool:
    parts = (ForcedTokens, CandidateSelection, TokenRecorder, CoveragePenalty)
    return any(part.is_requested(params) for part in parts)
