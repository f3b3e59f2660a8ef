"""Fields that requests for translations and for scores share, and the details of tokens in their answers."""

import math
from typing import Annotated

from pydantic import BaseModel, Field

from server.translation.types import SentenceDetails

MAX_TAG_CHARACTERS = 64  # of a language; the longest real ones have half as many

Timeout = Annotated[float | None, Field(gt=0, description="time for the answer in seconds; then 504")]


class TokenAlternative(BaseModel):
    """A token that might have stood here."""

    token: str
    score: float


class SentenceAnswer(BaseModel):
    """A sentence token by token; what was not asked for is missing."""

    source_tokens: list[str]
    target_tokens: list[str] = Field(description="with the end, where the sentence has one")
    token_scores: list[float | None] | None = Field(None, description="log-probabilities")
    token_alternatives: list[list[TokenAlternative]] | None = None
    alignment: list[int] | None = Field(None, description="for each target token but the end, a place in source_tokens")
    attention: list[list[float]] | None = None


def sentence_answer(details: SentenceDetails) -> SentenceAnswer:
    """The details of one sentence as they are answered."""
    alternatives = details.token_alternatives
    return SentenceAnswer(
        source_tokens=details.source_tokens,
        target_tokens=details.target_tokens,
        token_scores=None if details.token_scores is None else [finite(score) for score in details.token_scores],
        token_alternatives=None
        if alternatives is None
        else [
            [TokenAlternative(token=each.token, score=each.score) for each in best if math.isfinite(each.score)]
            for best in alternatives
        ],
        alignment=details.alignment,
        attention=details.attention,
    )


def finite(score: float) -> float | None:
    """A score that JSON can hold."""
    return score if math.isfinite(score) else None
