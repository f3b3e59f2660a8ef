"""Fields that requests for translations and for scores share, and the details of tokens in their answers."""

import math
from typing import Annotated

from pydantic import BaseModel, Field

from server.translation.types import SentenceDetails

MAX_TAG_CHARACTERS = 64  # the longest real language tags have half as many

Timeout = Annotated[float | None, Field(gt=0, description="time for the answer in seconds; then 504")]


class TokenAlternative(BaseModel):
    """A token that could stand at this position."""

    token: str
    score: float


class SentenceAnswer(BaseModel):
    """Details of the tokens of a sentence; fields that were not requested are absent."""

    source_tokens: list[str]
    target_tokens: list[str] = Field(description="including the end, if the sentence has one")
    token_scores: list[float | None] | None = Field(None, description="log-probabilities")
    token_alternatives: list[list[TokenAlternative]] | None = None
    alignment: list[int] | None = Field(None, description="an index of source_tokens for each target token but the end")
    attention: list[list[float]] | None = None


def sentence_answer(details: SentenceDetails) -> SentenceAnswer:
    """Convert the details of one sentence."""
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
    """Return a score that JSON can represent; None for others."""
    return score if math.isfinite(score) else None
