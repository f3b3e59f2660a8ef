"""Parts that the requests and the answers of the native protocol share."""

import json
import math
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Annotated, get_args, get_origin

import numpy as np
from fastapi.sse import format_sse_event
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from server.http.responses.large_json import json_off_loop
from server.http.responses.text_events import HEARTBEAT_SECONDS, OutcomeT, TextEvents
from server.http.state import RequestRecord
from server.interface.decoding_options import DecodingOptions
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.translation.text_stream import TextDelta, TextStream

MAX_TAG_CHARACTERS = 64  # the longest real language tags have half as many
MAX_MODEL_CHARACTERS = 200
MAX_PREFIX_CHARACTERS = 10_000

Timeout = Annotated[float | None, Field(ge=0.001, description="time for the answer in seconds; then 504")]

_MAX_FIELDS = 200
_MAX_ITEMS = 2000  # the limits of single fields are lower
_TEXTS = ("text", "translation")


def _texts(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        raise PydanticCustomError("text_type", "must be a string or a list of strings")
    wrong = next((index for index, item in enumerate(value) if not isinstance(item, str)), None)
    if wrong is not None:  # pydantic would describe each of 50,000
        raise PydanticCustomError("text_item_type", "item {index} must be a string", {"index": wrong})
    return tuple(value)


Texts = Annotated[
    tuple[str, ...],
    BeforeValidator(_texts, json_schema_input_type=str | list[str]),
    Field(description="a text, or a list of texts"),
]


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
        if isinstance(value, list) and any(isinstance(item, list) and len(item) > _MAX_ITEMS for item in value):
            raise PydanticCustomError("too_many_items", "must have at most {limit} items each", {"limit": _MAX_ITEMS})
        is_wrong = isinstance(value, dict) and not all(map(_is_term, value.values()))
        if is_wrong and _takes_mapping(cls.model_fields[info.field_name or ""].annotation):
            raise PydanticCustomError("string_values", "must have strings, or lists of strings, as values")
        return value


def finite(score: object) -> object:
    """Return a score that JSON can represent; None for others."""
    return score if not isinstance(score, float) or math.isfinite(score) else None


Score = Annotated[float | None, BeforeValidator(finite)]
IfAny = BeforeValidator(lambda given: given or None)
"""Leaves out what is empty."""


class AnswerModel(BaseModel):
    """A part of an answer that is made of the attributes of a result."""

    model_config = ConfigDict(from_attributes=True)


class AlternativeAnswer(AnswerModel):
    """Another translation, or another generated text, of the same text."""

    text: str
    score: Score = None
    log_probability: Score = None


class TokenAlternative(AnswerModel):
    """A token that could stand at this position."""

    token: str
    score: float


Alternatives = Annotated[
    list[TokenAlternative], BeforeValidator(lambda best: [each for each in best if math.isfinite(each.score)])
]
# An array until it is written: lists of 5 million numbers take 180 MB, and garbage collections visit each list.
Weights = Annotated[
    NDArray[np.float32],
    PlainValidator(lambda weights: weights),
    PlainSerializer(lambda weights: weights.tolist()),
    WithJsonSchema({"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
]


class SentenceAnswer(AnswerModel):
    """Details of the tokens of a sentence; fields that were not requested are absent."""

    source_tokens: list[str]
    target_tokens: list[str] = Field(description="including the end, if the sentence has one")
    token_scores: list[Score] | None = Field(None, description="log-probabilities")
    token_alternatives: list[Alternatives] | None = None
    alignment: list[int] | None = Field(None, description="an index of source_tokens for each target token but the end")
    attention: Weights | None = None


class DecodedAnswer(AnswerModel):
    """The answer to a text that was decoded. Tokens include the end of every sentence."""

    text: str
    source_tokens: int
    target_tokens: int
    finish_reason: FinishReason = Field(
        description="stop; length if max_new_tokens ended a sentence; repetition if max_repetitions did"
    )
    score: Score = Field(
        None,
        description="log-probability / length ** length_penalty, minus penalties; the mean over sentences, weighted "
        "by target tokens",
    )
    log_probability: Score = Field(None, description="natural log-probability without the target prefix")
    alternatives: list[AlternativeAnswer] | None = Field(
        None, description="second and further hypotheses; number i joins hypothesis i of every sentence"
    )

    def leave_out_unrequested(self, options: DecodingOptions) -> None:
        """Clear the fields that `options` do not request."""
        if options.num_hypotheses <= 1:
            self.alternatives = None
        if not options.return_scores:
            for each in (self, *(self.alternatives or ())):
                each.score = each.log_probability = None


class EventStream(TextEvents[OutcomeT]):
    """The stream of the native protocol.

    `text` events carry parts of the texts, each with the index of its text. The last event is `done`, with the plain
    answer and timings, or `error`, with the body of an error response.
    """

    def __init__(
        self,
        translate: Callable[[TextStream], Coroutine[None, None, OutcomeT]],
        answer: Callable[[OutcomeT], BaseModel],
        record: RequestRecord,
        metrics: Metrics,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        super().__init__(translate, record, metrics, heartbeat_seconds)
        self._answer = answer

    def heartbeat(self) -> bytes:
        """Return a comment."""
        return format_sse_event(comment="still at work")

    def events(self, deltas: Sequence[TextDelta]) -> bytes:
        """Return an event for each delta."""
        return b"".join([_event("text", _json({"index": delta.index, "text": delta.text})) for delta in deltas])

    async def ending(self, outcome: OutcomeT) -> bytes:
        """Return the event with the plain answer and its timings."""
        content = await json_off_loop(partial(self._answer, outcome))
        timings = _json({"timings": self._record.timings()})
        return _event("done", b"".join((content[:-1], b"" if content == b"{}" else b",", timings[1:])))

    def failure(self, body: bytes) -> bytes:
        """Return the event with an error."""
        return _event("error", body)


def _event(name: str, data: bytes) -> bytes:
    # JSON has no line breaks to be escaped; to look for them in 20 MB would hold the event loop for 0.15 s.
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def _json(content: dict[str, object]) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


# For the OpenAPI description of an operation, with the content of the plain answer.
EVENTS_CONTENT: dict[str, object] = {
    TextEvents.media_type: {
        "schema": {
            "type": "string",
            "description": "With `stream`: `text` events with the index of a text and its next characters. The last "
            "event is `done`, with the plain answer and `timings` in milliseconds, or `error`, with the body of an "
            "error response.",
        },
        "example": """event: text
data: {"index":0,"text":"Guten Morgen. Wie"}

event: text
data: {"index":0,"text":" geht es Ihnen heute?"}

event: done
data: {"translations":[{"text":"Guten Morgen. Wie geht es Ihnen heute?", ...}],"model":"en-de","timings":{...}}

""",
    }
}
