"""What a request forbids or discourages, applied to whole rows of scores before anybody chooses among them.

Scores are log-probabilities in beam search and logits otherwise, as in Hugging Face `generate`, whose definitions these
are. A processor changes `scores` [rows, vocab] in place; `prefixes` [rows, length] are the tokens so far, those of a
target prefix included.
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
    """One rule."""

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Change the scores."""
        ...


def processors_for(params: SentenceParams, end_token: int) -> list[LogitsProcessor]:
    """The rules that a request asks for, in the order in which Hugging Face applies them."""
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
    """Scores of tokens that were generated are divided by the penalty, or multiplied where they are negative.

    Keskar et al. 2019, arXiv:1909.05858; more than 1 discourages what was said, less than 1 encourages it.
    """

    penalty: np.float32

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Once for each token, however often it was generated."""
        said = np.take_along_axis(scores, prefixes, axis=1)
        np.put_along_axis(scores, prefixes, np.where(said < 0, said * self.penalty, said / self.penalty), axis=1)


@dataclass(frozen=True, slots=True)
class NoRepeatedNgram:
    """No sequence of `size` tokens comes twice."""

    size: int

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Rule out what would end a sequence that has been there."""
        if prefixes.shape[1] < self.size:
            return
        windows = np.lib.stride_tricks.sliding_window_view(prefixes, self.size, axis=1)  # [rows, windows, size]
        begun = prefixes[:, prefixes.shape[1] - self.size + 1 :]
        rows, places = np.nonzero((windows[:, :, :-1] == begun[:, None, :]).all(axis=2))
        scores[rows, windows[rows, places, -1]] = -np.inf


@dataclass(frozen=True, slots=True)
class SuppressedTokens:
    """These tokens are never generated."""

    tokens: list[int]

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Rule them out everywhere."""
        scores[:, self.tokens] = -np.inf


@dataclass(frozen=True, slots=True)
class SuppressedPhrases:
    """These sequences of tokens are never generated; a part of one may be."""

    phrases: Sequence[Tokens]

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Rule out the last token where the others stand at the end of the prefix."""
        length = prefixes.shape[1]
        for *begun, last in self.phrases:
            if len(begun) <= length:
                scores[(prefixes[:, length - len(begun) :] == begun).all(axis=1), last] = -np.inf


@dataclass(frozen=True, slots=True)
class MinNewTokens:
    """No end before `num_tokens` tokens."""

    num_tokens: int
    end_token: int

    def apply(self, scores: Scores, prefixes: Prefixes) -> None:
        """Rule the end out while there are fewer."""
        if prefixes.shape[1] < self.num_tokens:
            scores[:, self.end_token] = -np.inf
