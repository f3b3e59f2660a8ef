"""The seam between the engine and the searches: a search is told the candidates and answers with its choice.

A search holds all requests that are decoded its way, one place each, in arrays: what happens every step to every row is
numpy, Python objects appear only when a hypothesis ends. It knows nothing of rows, caches or models.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bundle.manifest import BundleConfig
from server.interface.request import FinishReason, Hypothesis, SentenceParams

EndBonus = Callable[[list[int]], float]
"""Addition to the score of a complete hypothesis, from all its tokens; never positive."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What a search must know of the model, and how many requests it may hold at once.

    With `forced_end` the last token that a limit allows is the end-of-sequence token, at no cost, as Marian
    checkpoints ask of Hugging Face `generate`.
    """

    max_requests: int
    max_new_tokens: int
    end_token: int
    forced_end: bool = False

    @classmethod
    def of(cls, config: BundleConfig, max_requests: int) -> Self:
        """Those of this model."""
        special = config.special_tokens
        return cls(max_requests, config.shapes.max_target_tokens, special.end_of_sequence, special.forced_end)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a search chose for its requests, in their order.

    `tokens` and `parents` [requests, beam_size]: each beam's next token, and the beam it continues.
    `finished` [requests]: these have their hypotheses; their tokens and parents mean nothing.
    """

    tokens: NDArray[np.int32]
    parents: NDArray[np.intp]
    finished: NDArray[np.bool_]


class Search(Protocol):
    """One way of decoding, for many requests at once."""

    beam_size: int  # rows a request
    num_candidates: int  # the search wants this many continuations of each row
    takes_graph_candidates: bool  # or all its requests have guides that make them of whole rows

    @property
    def needs_scores(self) -> bool:
        """Whether log-probabilities are wanted in the next step; they cost a second pass over the vocabulary."""
        ...

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Take one more request; its place is after those already here."""
        ...

    def prefixes(self, place: int) -> NDArray[np.int32]:
        """The tokens that a request's beams have so far, [beam_size, length]."""
        ...

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Choose among the candidates [requests, beam_size, num_candidates], best first.

        `log_probs` may be NaN in a step that did not need them.
        """
        ...

    def final_tokens(self, place: int) -> NDArray[np.int32]:
        """The tokens [num_final] with which the best answer of a running request begins, whatever is still to come.

        Never taken back: what this gives later, and the answer in the end, begin with them. Asked only for requests
        that stream.
        """
        ...

    def hypotheses(self, place: int) -> list[Hypothesis]:
        """The answers of a finished request, best first, at most as many as it asked for; none if none is possible."""
        ...

    def remove(self, holes: NDArray[np.intp], movers: NDArray[np.intp], num_left: int) -> None:
        """Drop requests: those at `movers` take the places `holes`, and `num_left` are left."""
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
