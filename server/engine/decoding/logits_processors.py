"""Logits processors: constraints and penalties applied to score rows before token selection.

Scores are log-probabilities in beam search and logits otherwise, with the definitions of Hugging Face `generate`. A
processor changes `scores` [rows, vocab] in place; `prefixes` [rows, length] are the tokens so far, including those of a
target prefix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from server.interface.request import SentenceParams, Tokens

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
