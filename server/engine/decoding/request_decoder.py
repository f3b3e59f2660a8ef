"""What a request with options adds to its search: it prepares what the search is told, and notes what came of it.

Searches choose among a few candidates of each row. A guide makes these candidates anew from whole rows of logits, where
an option changes or forbids something, and keeps what answers are to be annotated with. Plain requests have none.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from server.engine.decoding.cross_attention import attention_weights, coverage
from server.engine.decoding.logits_processors import processors_for
from server.engine.decoding.sampler import draw
from server.engine.decoding.token_recorder import TokenRecord, TokenRecorder
from server.engine.decoding.top_k import top_k
from server.interface.request import FinishReason, Hypothesis, SentenceParams, TokenDetails


@dataclass(frozen=True, slots=True)
class RequestRows:
    """What a step said of one request's beams.

    `tokens` and `log_probs` [beams, num_candidates] are the graph's candidates. `logits` [beams, vocab] and `queries`
    [beams, heads * head_dim], those of the layer that the request looks at, are there for a guide that needs them.
    """

    tokens: NDArray[np.int64]
    log_probs: NDArray[np.float32]
    log_normalizer: NDArray[np.float32]
    logits: NDArray[np.float32] | None
    queries: NDArray[np.floating] | None


class RequestDecoder:
    """Of one request, from the moment it gets its row."""

    def __init__(self, params: SentenceParams, end_token: int, attention_scale: float) -> None:
        self.params = params
        self.needs_attention = bool(params.options.coverage_penalty) or params.return_attention
        self._processors = processors_for(params, end_token)
        self._end_token = end_token
        self._attention_scale = attention_scale
        self._cross_keys: NDArray[np.float32] | None = None  # [heads, source_len, head_dim]
        self._to_read = np.array(params.forced_target or params.target_prefix, np.int32)
        self._required = np.array(sorted({token for phrase in params.required_phrases for token in phrase}), np.int64)
        self._prompt_len = len(params.target_prefix)
        self._wants_token_scores = params.options.return_token_scores or bool(params.forced_target)
        self._trace = TokenRecorder() if self._wants_token_scores or _needs_trace(params) else None

    @classmethod
    def of(cls, params: SentenceParams, end_token: int, attention_scale: float) -> "RequestDecoder | None":
        """A guide for a request that needs one."""
        if params.target_prefix or params.forced_target or _needs_logits(params) or _needs_trace(params):
            return cls(params, end_token, attention_scale)
        return None

    @property
    def num_to_read(self) -> int:
        """Tokens that are given: of a target prefix, or of a translation to be scored."""
        return self._to_read.size

    def needs_logits(self, is_reading: bool) -> bool:
        """Whether whole rows of logits are needed in the next step."""
        if is_reading:
            return self._wants_token_scores or bool(self.params.options.num_token_alternatives)
        return _needs_logits(self.params)

    def look_at(self, cross_keys: NDArray[np.float32]) -> None:
        """Remember the source's keys [heads, source_len, head_dim] of the layer that the request looks at."""
        self._cross_keys = cross_keys

    def read(self, num_read: int, rows: RequestRows) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The next given token [1, 1] as the only candidate, and its log-probability, NaN if nobody wants it."""
        token = self._to_read[num_read : num_read + 1].astype(np.int64)[None]
        log_prob = np.full((1, 1), np.nan, np.float32)
        if rows.logits is not None:
            log_prob = rows.logits[:, token[0]] - rows.log_normalizer[:, None]
        if self._trace:
            self._note(self._to_read[None, :num_read], token, log_prob, rows)
        return token, log_prob

    def advise(
        self, prefixes: NDArray[np.int32], num_candidates: int, rows: RequestRows
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Candidates [beams, num_candidates] of each beam, best first, as a search is told them.

        `prefixes` [beams, length] are the tokens that the search has chosen.
        """
        prompt = np.broadcast_to(self._to_read, (prefixes.shape[0], self._prompt_len))
        sequences = np.concatenate([prompt, prefixes], axis=1)
        if rows.logits is None:
            tokens, told = rows.tokens, rows.log_probs
            by_model = told
        else:
            tokens, told, by_model = self._choose(sequences, num_candidates, rows.logits, rows.log_normalizer[:, None])
        if self._trace:
            self._note(sequences, tokens, by_model, rows)
        return tokens, told

    def coverage_bonus(self, tokens: list[int]) -> float:
        """Return the addition of the coverage penalty to the score of a hypothesis with these tokens."""
        return self.params.options.coverage_penalty * coverage(self._attention_of(self._with_prompt(tokens)))

    def annotate(self, hypothesis: Hypothesis) -> Hypothesis:
        """The hypothesis as it is answered: behind the target prefix, with the model's own log-probability."""
        answer = self._with_prompt(hypothesis.token_ids)
        tokens = answer.tolist()
        if self._trace is None:
            return replace(hypothesis, token_ids=tokens)
        # Where a limit forces the end, that is the limit's doing: it costs nothing and is not counted.
        is_ended = hypothesis.finish_reason is FinishReason.STOP
        sequence = np.array([*tokens, self._end_token], np.int32) if is_ended else answer
        generated = self._trace.log_probabilities(sequence, self._prompt_len)
        return replace(
            hypothesis,
            token_ids=tokens,
            log_probability=float(np.sum(generated)),
            details=self._details(answer, sequence),
        )

    def scored(self) -> Hypothesis:
        """The given translation, once it was read, with what it scores."""
        assert self._trace is not None
        log_probability = float(np.sum(self._trace.log_probabilities(self._to_read)))
        answer = self._to_read[:-1]
        score = log_probability / self._to_read.size**self.params.options.length_penalty
        if self.params.options.coverage_penalty:
            score += self.params.options.coverage_penalty * coverage(self._attention_of(self._to_read))
        details = self._details(answer, self._to_read)
        return Hypothesis(answer.tolist(), log_probability, score, FinishReason.STOP, details)

    def _with_prompt(self, tokens: list[int]) -> NDArray[np.int32]:
        return np.array([*self.params.target_prefix, *tokens], np.int32)

    def _choose(
        self,
        sequences: NDArray[np.int32],
        num_candidates: int,
        logits: NDArray[np.float32],
        log_normalizer: NDArray[np.float32],
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
        """Candidates, what the search is told of them, and the model's log-probabilities."""
        is_beam = self.params.sampling is None and self.params.beam_size > 1
        # Beams rank what the rules have made of log-probabilities; others are told the model's own.
        scores = logits - log_normalizer if is_beam else logits.copy()
        for processor in self._processors:
            processor.apply(scores, sequences)
        if not is_beam:  # which has other beams to go on with
            scores[np.isneginf(scores.max(axis=1)), self._end_token] = 0.0  # where nothing is left, the answer ends
        if self.params.sampling is not None:
            place = sequences.shape[1]
            drawn = [draw(row, self.params.sampling, sample, place) for sample, row in enumerate(scores)]
            tokens = np.array(drawn, np.int64)[:, None]
            best = np.take_along_axis(scores, tokens, axis=1)
        elif self.params.options.return_alternatives and sequences.shape[1] == self._prompt_len:
            scores[0, self._end_token] = -np.inf
            first_tokens, _ = top_k(scores[:1], len(sequences))
            tokens = first_tokens.T
            best = np.take_along_axis(scores, tokens, axis=1)
        elif self._required.size:
            tokens, best = self._with_required(scores)
        else:
            tokens, best = top_k(scores, num_candidates)
        by_model = np.take_along_axis(logits, tokens, axis=1) - log_normalizer
        return tokens, best if is_beam else by_model, by_model

    def _with_required(self, scores: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The best candidates of each row, and every token of the required phrases behind them."""
        best_tokens, best = top_k(scores, 2 * self.params.beam_size)
        required = np.broadcast_to(self._required, (len(scores), self._required.size))
        is_there = (required[:, :, None] == best_tokens[:, None]).any(axis=2)
        required_scores = np.where(is_there, np.float32(-np.inf), scores[:, self._required])
        return np.concatenate([best_tokens, required], axis=1), np.concatenate([best, required_scores], axis=1)

    def _note(
        self,
        sequences: NDArray[np.int32],
        tokens: NDArray[np.int64],
        log_probs: NDArray[np.float32],
        rows: RequestRows,
    ) -> None:
        assert self._trace is not None
        num_alternatives = self.params.options.num_token_alternatives
        alternatives: list[list[tuple[int, float]]] = [[] for _ in sequences]
        if num_alternatives and rows.logits is not None:
            best, logits = top_k(rows.logits, num_alternatives)
            log_probs_of_best = (logits - rows.log_normalizer[:, None]).tolist()
            alternatives = [
                list(zip(*each, strict=True)) for each in zip(best.tolist(), log_probs_of_best, strict=True)
            ]
        known = zip(tokens.tolist(), log_probs.tolist(), strict=True)
        for beam, (sequence, each) in enumerate(zip(sequences, known, strict=True)):
            log_probs_by_token = {token: gained for token, gained in zip(*each, strict=True) if gained != -np.inf}
            self._trace.write(
                sequence, TokenRecord(log_probs_by_token, self._attention(beam, rows), alternatives[beam])
            )

    def _attention(self, beam: int, rows: RequestRows) -> NDArray[np.float32] | None:
        if rows.queries is None or self._cross_keys is None:
            return None
        weights = attention_weights(rows.queries[beam], self._cross_keys, self._attention_scale)
        chosen = list(self.params.options.alignment_heads)
        mean: NDArray[np.float32] = (weights[chosen] if chosen else weights).mean(axis=0)
        return mean

    def _attention_of(self, sequence: NDArray[np.int32]) -> NDArray[np.float32]:
        """[num_tokens, source_len], also where there are no tokens."""
        assert self._trace is not None
        assert self._cross_keys is not None
        return self._trace.attention(sequence).reshape(-1, self._cross_keys.shape[1])

    def _details(self, answer: NDArray[np.int32], sequence: NDArray[np.int32]) -> TokenDetails | None:
        """Of an answer, and of the sequence that has its end-of-sequence token as well, where it was generated."""
        assert self._trace is not None
        params = self.params
        if not (self._wants_token_scores or params.options.num_token_alternatives or params.return_attention):
            return None
        return TokenDetails(
            self._trace.log_probabilities(sequence) if self._wants_token_scores else [],
            self._trace.alternatives(sequence) if self.params.options.num_token_alternatives else [],
            self._attention_of(answer) if self.params.return_attention else None,
        )


def _needs_logits(params: SentenceParams) -> bool:
    """Whether a search cannot be told the graph's own candidates."""
    return bool(
        params.sampling
        or params.options.return_alternatives
        or params.options.repetition_penalty != 1.0
        or params.options.no_repeat_ngram_size
        or params.suppress_phrases
        or params.options.suppress_tokens
        or params.min_new_tokens
        or params.required_phrases
        or params.options.num_token_alternatives
    )


def _needs_trace(params: SentenceParams) -> bool:
    """Whether answers are annotated, or ranked by more than the model's log-probabilities."""
    return bool(
        params.options.return_token_scores
        or params.options.num_token_alternatives
        or params.return_attention
        or params.options.coverage_penalty
        or params.options.repetition_penalty != 1.0
        or params.options.num_beam_groups > 1
    )
