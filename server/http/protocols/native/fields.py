"""Fields that requests for translations and for scores share, and the details of tokens in their answers."""

import math
from typing import Annotated, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from server.translation.types import SentenceDetails

MAX_TAG_CHARACTERS = 64  # the longest real language tags have half as many
MAX_MODEL_CHARACTERS = 200
MAX_PREFIX_CHARACTERS = 10_000

Timeout = Annotated[float | None, Field(ge=0.001, description="time for the answer in seconds; then 504")]

_MAX_FIELDS = 200
_MAX_ITEMS = 2000  # the limits of single fields are lower
_TEXTS = ("text", "translation")


def _checked_text(value: object) -> object:
    # Checked here because the errors of a union name every member that did not match.
    if isinstance(value, list):
        wrong = next((index for index, item in enumerate(value) if not isinstance(item, str)), None)
        if wrong is not None:
            raise PydanticCustomError("text_item_type", "item {index} must be a string", {"index": wrong})
    elif not isinstance(value, str):
        raise PydanticCustomError("text_type", "must be a string or a list of strings")
    return value


Text = Annotated[str | list[str], BeforeValidator(_checked_text), Field(description="a text, or a list of texts")]


def _is_term(value: object) -> bool:
    """Return whether a value is what a glossary has for a term: a translation, or several."""
    if isinstance(value, list):
        return len(value) <= _MAX_ITEMS and all(isinstance(item, str) for item in value)
    return isinstance(value, str)


def _takes_mapping(annotation: object) -> bool:
    """Return whether a value of this type, or of a union, may be a mapping."""
    return any(get_origin(each) is dict for each in (annotation, *get_args(annotation)))


class BoundedBody(BaseModel):
    """A body whose lists and mappings are bounded before their items are validated.

    pydantic makes an error for every item that is wrong: 50,000 of them block the event loop for more than a second.
    """

    @model_validator(mode="before")
    @classmethod
    def _check_fields(cls, value: object) -> object:
        if isinstance(value, dict) and len(value) > _MAX_FIELDS:
            message = "the body must have at most {limit} fields. Given: {number}"
            raise PydanticCustomError("too_many_fields", message, {"limit": _MAX_FIELDS, "number": len(value)})
        return value

    @field_validator("*", mode="before")
    @classmethod
    def _check_items(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, list) and info.field_name not in _TEXTS and len(value) > _MAX_ITEMS:
            raise PydanticCustomError("too_many_items", "must have at most {limit} items", {"limit": _MAX_ITEMS})
        if isinstance(value, list) and info.field_name in _TEXTS:
            wrong = next((index for index, item in enumerate(value) if not isinstance(item, str)), None)
            if wrong is not None:
                raise PydanticCustomError("text_item_type", "item {index} must be a string", {"index": wrong})
        if isinstance(value, list) and any(isinstance(item, list) and len(item) > _MAX_ITEMS for item in value):
            raise PydanticCustomError("too_many_items", "must have at most {limit} items each", {"limit": _MAX_ITEMS})
        is_wrong = isinstance(value, dict) and not all(map(_is_term, value.values()))
        if is_wrong and _takes_mapping(cls.model_fields[info.field_name or ""].annotation):
            raise PydanticCustomError("string_values", "must have strings, or lists of strings, as values")
        return value


class AlternativeAnswer(BaseModel):
    """Another translation, or another generated text, of the same text."""

    text: str
    score: float | None = None
    log_probability: float | None = None


class TokenAlternative(BaseModel):
    """A token that could stand at this position."""

    token: str
    score: float


# An array until it is written: lists of 5 million numbers take 180 MB, and garbage collections visit each list.
Weights = Annotated[
    NDArray[np.float32],
    PlainValidator(lambda weights: weights),
    PlainSerializer(lambda weights: weights.tolist()),
    WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
]


class SentenceAnswer(BaseModel):
    """Details of the tokens of a sentence; fields that were not requested are absent."""

    source_tokens: list[str]
    target_tokens: list[str] = Field(description="including the end, if the sentence has one")
    token_scores: list[float | None] | None = Field(None, description="log-probabilities")
    token_alternatives: list[list[TokenAlternative]] | None = None
    alignment: list[int] | None = Field(None, description="an index of source_tokens for each target token but the end")
    attention: Weights | None = None


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
