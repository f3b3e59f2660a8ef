"""From whole rows of logits to the candidates of a search, for requests with decoding options.

Logits processors apply constraints and penalties, then `CandidateSelection` takes the best tokens or draws samples.
Scores are log-probabilities in beam search and logits otherwise, with the definitions of Hugging Face `generate`. A
processor changes `scores` [rows, vocab] in place; `prefixes` [rows, length] are the tokens so far, including those of a
target prefix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.candidates import top_k
from server.engine.model_runner import RequestRows
from server.interface.request import Sampling, SentenceParams, Tokens

Scores = NDArray[np.float32]
Prefixes = NDArray[np.int32]


class LogitsProcessor(Protocol):
    """One rule on scores."""

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Change the scores in place."""
        ...


def processors_for(params: SentenceParams, end_token: int) -> list[LogitsProcessor]:
    """Return the processors of a request in the order of Hugging Face."""
    rules: list[LogitsProcessor] = []
    if params.options.repetition_penalty != 1.0:
        rules.append(RepetitionPenalty(np.float32(params.options.repetition_penalty)))
    if params.options.no_repeat_ngram_size:
        rules.append(NoRepeatedNgram(params.options.no_repeat_ngram_size))
    if params.suppress_phrases:
        rules.append(SuppressedPhrases(params.suppress_phrases))
    if params.min_new_tokens:
        rules.append(MinNewTokens(params.min_new_tokens + len(params.target_prefix), end_token))
    if params.options.suppress_tokens:
        rules.append(SuppressedTokens(list(params.options.suppress_tokens)))
    return rules


@dataclass(frozen=True, slots=True)
class RepetitionPenalty:
    """Penalty on generated tokens: positive scores are divided by it, negative ones multiplied.

    Keskar et al. 2019, arXiv:1909.05858; more than 1 discourages repetitions, less than 1 encourages them.
    """

    penalty: np.float32

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Apply the penalty once to each token, however often it was generated."""
        old = np.take_along_axis(scores, prefixes, axis=1)
        np.put_along_axis(scores, prefixes, np.where(old < 0, old * self.penalty, old / self.penalty), axis=1)


@dataclass(frozen=True, slots=True)
class NoRepeatedNgram:
    """Constraint: no sequence of `size` tokens occurs twice."""

    size: int

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Rule out tokens that would complete an earlier sequence."""
        if prefixes.shape[1] < self.size:
            return
        windows = np.lib.stride_tricks.sliding_window_view(prefixes, self.size, axis=1)  # [rows, windows, size]
        begun = prefixes[:, prefixes.shape[1] - self.size + 1 :]
        rows, positions = np.nonzero((windows[:, :, :-1] == begun[:, None, :]).all(axis=2))
        scores[rows, windows[rows, positions, -1]] = -np.inf


@dataclass(frozen=True, slots=True)
class SuppressedTokens:
    """Constraint: tokens that are never generated."""

    tokens: list[int]

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Rule the tokens out in every row."""
        scores[:, self.tokens] = -np.inf


@dataclass(frozen=True, slots=True)
class SuppressedPhrases:
    """Constraint: sequences of tokens that are never generated as a whole."""

    phrases: Sequence[Tokens]

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Rule out the last token of a sequence after its other tokens."""
        length = prefixes.shape[1]
        for *begun, last in self.phrases:
            if len(begun) <= length:
                scores[(prefixes[:, length - len(begun) :] == begun).all(axis=1), last] = -np.inf


@dataclass(frozen=True, slots=True)
class MinNewTokens:
    """Constraint: no end-of-sequence token before `num_tokens` tokens."""

    num_tokens: int
    end_token: int

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Rule the end out in shorter prefixes."""
        if prefixes.shape[1] < self.num_tokens:
            scores[:, self.end_token] = -np.inf


_HEAD = 256


def draw(logits: NDArray[np.float32], sampling: Sampling, sample: int, position: int) -> int:
    """Return the token at `position` in the `sample`-th sample of a request, drawn from `logits` [vocab].

    The random number comes from Philox, a counter-based generator (Salmon et al. 2011): its key is seed and sample, its
    counter the position. So an answer is reproducible, whatever was decoded in the same batch.
    """
    probabilities = token_probabilities(logits, sampling)
    key = np.array([sampling.seed, sample], np.uint64)
    number = np.random.Generator(np.random.Philox(key=key, counter=position)).random()
    reached = np.cumsum(probabilities)
    # Rounding may leave the sum a little off 1, and a token of probability 0 must not be drawn.
    token = int(np.searchsorted(reached, number * reached[-1], side="right"))
    return min(token, int(np.flatnonzero(probabilities)[-1]))


def token_probabilities(logits: NDArray[np.float32], sampling: Sampling) -> NDArray[np.float64]:
    """Return the probability of each token [vocab] after temperature, `top_k`, `top_p` and `min_p`, in this order."""
    scores = logits.astype(np.float64) / sampling.temperature
    if 0 < sampling.top_k < scores.size:
        scores[scores < np.partition(scores, -sampling.top_k)[-sampling.top_k]] = -np.inf
    probabilities = _softmax(scores)
    if sampling.top_p < 1.0:
        scores[~_nucleus(probabilities, sampling.top_p)] = -np.inf
        probabilities = _softmax(scores)
    if sampling.min_p > 0.0:
        scores[probabilities < sampling.min_p * probabilities.max()] = -np.inf
        probabilities = _softmax(scores)
    return probabilities


def _nucleus(probabilities: NDArray[np.float64], top_p: float) -> NDArray[np.bool_]:
    """Return which tokens belong to the smallest set of most likely tokens that reaches `top_p`.

    The set is usually small, so a few hundred most likely tokens are tried before all are sorted. Of equal tokens the
    larger id counts as more likely, as in Hugging Face.
    """
    head = np.arange(probabilities.size)
    if probabilities.size > _HEAD:
        head = np.sort(np.argpartition(probabilities, -_HEAD)[-_HEAD:])
        likelier = probabilities[head] > probabilities[head].min()  # tokens equal to the last one may be missing
        if probabilities[head[likelier]].sum() < top_p:
            head = np.arange(probabilities.size)
    descending = head[np.argsort(probabilities[head], kind="stable")[::-1]]
    reached_before = np.cumsum(probabilities[descending]) - probabilities[descending]
    is_kept = np.zeros(probabilities.size, np.bool_)
    is_kept[descending[reached_before < top_p]] = True
    return is_kept


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights: NDArray[np.float64] = np.exp(scores - scores.max())
    weights /= weights.sum()
    return weights


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
