"""Fields of a body that say how to decode, and fields of an answer that say what was found of each token."""

import math
from typing import Annotated, cast

from pydantic import BaseModel, ConfigDict, Field

from server.interface.decoding_options import (
    MAX_PHRASE_CHARACTERS,
    MAX_PHRASES,
    MAX_REQUIRED_PHRASES,
    MAX_SUPPRESSED_TOKENS,
    RANGES,
)
from server.interface.request import DEFAULT_MAX_REPETITIONS
from server.translation.limits import MAX_LENGTH_PENALTY
from server.translation.types import SentenceDetails

MAX_TAG_CHARACTERS = 64  # of a language; the longest real ones have half as many

Phrase = Annotated[str, Field(min_length=1, max_length=MAX_PHRASE_CHARACTERS)]


def _in_range(name: str, default: float | None, description: str) -> float:
    """A field within the range that this option has everywhere."""
    range_ = RANGES[name]
    return cast(float, Field(default, ge=range_.least, le=range_.most, description=description))


class DetailFields(BaseModel):
    """What is to be answered of each token."""

    # Strict: true is no number and "4" is none either; whoever sends them has a bug that a guess would hide.
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    length_penalty: float = Field(
        1.0,
        ge=-MAX_LENGTH_PENALTY,
        le=MAX_LENGTH_PENALTY,
        description="exponent of the length in the score of a hypothesis: more than 0 favours longer translations",
    )
    return_token_scores: bool = Field(False, description="add the log-probability of each token")
    num_token_alternatives: int = Field(
        0,
        ge=int(RANGES["num_token_alternatives"].least),
        le=int(RANGES["num_token_alternatives"].most),
        description="add so many of the most likely tokens at each place",
    )
    return_alignments: bool = Field(False, description="add the source token that each target token looks at most")
    return_attention: bool = Field(False, description="add all attention, target tokens by source tokens")
    alignment_layer: int = Field(-1, description="decoder layer whose cross-attention is meant, from 0; -1 is the last")
    alignment_heads: list[int] = Field([], max_length=64, description="its heads, averaged; none named: all")
    timeout_seconds: float | None = Field(None, gt=0, description="time for the answer; then 504")


class DecodingFields(DetailFields):
    """All options of decoding beside those details."""

    coverage_penalty: float = _in_range(
        "coverage_penalty", 0.0, "what source tokens without attention cost a hypothesis (Wu et al. 2016)"
    )
    patience: float = _in_range(
        "patience", 1.0, "complete hypotheses a beam search waits for, by beam_size (Kasai et al. 2022)"
    )
    num_beam_groups: int = Field(1, ge=1, le=8, description="groups of beams that choose one after the other")
    diversity_penalty: float = _in_range(
        "diversity_penalty", 0.0, "what a token costs a group of beams for each earlier one that chose it"
    )
    temperature: float | None = _in_range("temperature", None, "draw tokens: less than 1 the likelier, more the others")
    top_k: int | None = Field(None, ge=1, le=int(RANGES["top_k"].most), description="draw among the k likeliest tokens")
    top_p: float | None = _in_range("top_p", None, "draw among the likeliest tokens that reach this probability")
    min_p: float | None = _in_range("min_p", None, "draw among tokens at least so likely, relative to the likeliest")
    seed: int | None = Field(
        None, ge=0, le=int(RANGES["seed"].most), description="draw the same tokens for the same seed; else one is drawn"
    )
    target_prefix: str | list[str] | None = Field(
        None, description="how every translation begins, or one beginning a text; each text is then one sentence"
    )
    required_phrases: list[Phrase] = Field(
        [], max_length=MAX_REQUIRED_PHRASES, description="what each translation must have; each text is one sentence"
    )
    suppress_phrases: list[Phrase] = Field([], max_length=MAX_PHRASES, description="what no translation may have")
    suppress_tokens: list[int] = Field(
        [], max_length=MAX_SUPPRESSED_TOKENS, description="ids of tokens that no translation may have"
    )
    no_repeat_ngram_size: int = Field(
        0, ge=0, le=int(RANGES["no_repeat_ngram_size"].most), description="no sequence of so many tokens comes twice"
    )
    repetition_penalty: float = _in_range(
        "repetition_penalty", 1.0, "more than 1 makes tokens less likely that were generated before"
    )
    min_new_tokens: int = Field(
        0, ge=0, description="fewest tokens of a sentence, the end not counted; no more than max_length_ratio allows"
    )
    max_length_ratio: float | None = _in_range("max_length_ratio", None, "most tokens for each token of the source")
    max_repetitions: int = Field(
        DEFAULT_MAX_REPETITIONS,
        ge=0,
        le=int(RANGES["max_repetitions"].most),
        description="a sentence ends when 1 to 8 tokens come more often than that in a row; 0: it does not",
    )
    return_alternatives: bool = Field(
        False,
        description="num_hypotheses different tokens at the first place behind target_prefix, and how each goes on",
    )


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
