"""Protocol of a search: it receives candidates and returns a choice.

A search keeps all its requests in arrays, one index each: the work of every step on every row is NumPy, and Python
objects appear only when a hypothesis ends. It is independent of rows, caches and models.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bundle.manifest import BundleConfig
from server.interface.request import FinishReason, Hypothesis, SentenceParams
from server.interface.word_tokens import NO_WORDS, WordTokens

EndBonus = Callable[[list[int]], float]
"""Addition to the score of a complete hypothesis, from all its tokens; never positive."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of the model, and the number of requests of a search.

    With `forced_end` the last token within a limit is the end-of-sequence token, at no cost, as Marian checkpoints
    configure Hugging Face `generate`.
    """

    max_requests: int
    max_new_tokens: int
    end_token: int
    forced_end: bool = False
    words: WordTokens = NO_WORDS

    @classmethod
    def of(cls, config: BundleConfig, max_requests: int, words: WordTokens = NO_WORDS) -> Self:
        """Return the limits of a model."""
        special, max_tokens = config.special_tokens, config.shapes.max_target_tokens
        return cls(max_requests, max_tokens, special.end_of_sequence, special.forced_end, words)


@dataclass(frozen=True, slots=True)
class Choice:
    """Choices of a search for its requests, in their order.

    `tokens` and `parents` [requests, beam_size] are each beam's next token and the beam that it continues. `finished`
    [requests] marks requests that have their hypotheses; their tokens and parents are undefined. `common` [requests,
    beam_size, beam_size], if known, is the number of tokens that two beams had in common before this step.
    """

    tokens: NDArray[np.int32]
    parents: NDArray[np.intp]
    finished: NDArray[np.bool_]
    common: NDArray[np.int32] | None = None


class Search(Protocol):
    """One decoding method for many requests."""

    beam_size: int  # rows a request
    num_candidates: int  # candidates that the search receives for each row
    num_graph_candidates: int  # of them, that the graph finds; decoders select the others

    @property
    def needs_scores(self) -> bool:
        """Whether the next step must compute log-probabilities, by a second pass over the vocabulary."""
        ...

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request; its index follows those of the other requests."""
        ...

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return the tokens of a request's beams so far, [beam_size, length]."""
        ...

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Choose among the candidates [requests, beam_size, num_candidates], best first.

        `log_probs` may be NaN in a step that does not need scores.
        """
        ...

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return the tokens [num_final] with which the best answer of a running request certainly begins.

        Later results, and the answer itself, begin with the same tokens. Called for streaming requests only.
        """
        ...

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return the requested hypotheses of a finished request, best first; fewer, or none, if no more are valid."""
        ...

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Remove requests: those at `movers` move to `holes`, and `num_left` remain."""
        ...


def end_hypothesis(
    tokens: list[int],
    log_probability: float | np.float32,
    length_penalty: float,
    max_new_tokens: int,
    limits: SearchLimits,
    *,
    has_looped: bool = False,
    bonus: EndBonus | None = None,
) -> Hypothesis:
    """Return the hypothesis that ends with these tokens, with its finish reason and score.

    score = log_probability / num_tokens ** length_penalty + bonus, in the precision of `log_probability`; num_tokens
    counts the end-of-sequence token. An end-of-sequence token forced by the limit counts as reaching the limit.
    """
    has_end = tokens[-1:] == [limits.end_token]
    is_forced = limits.forced_end and len(tokens) >= max_new_tokens
    reason = FinishReason.STOP if has_end and not is_forced else FinishReason.LENGTH
    if has_looped:
        reason = FinishReason.REPETITION
    num_tokens = type(log_probability)(max(len(tokens), 1))
    score = float(log_probability / num_tokens**length_penalty)
    if bonus is not None:
        score += bonus(tokens)
    return Hypothesis(tokens[:-1] if has_end else tokens, float(log_probability), score, reason)


def common_prefix(beams: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the tokens with which all of `beams` [beams, length] begin."""
    agreed = (beams == beams[:1]).all(axis=0)
    return beams[0, : agreed.size if agreed.all() else int(agreed.argmin())]
