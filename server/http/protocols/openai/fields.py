"""Bodies, streams and errors of the OpenAI-compatible protocol."""

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, StrictBool, field_validator

from server.http.responses.error_formats import ErrorFormat
from server.http.responses.text_events import HEARTBEAT_SECONDS, TextEvents
from server.http.state import RequestRecord
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.text.unicode_text import replace_lone_surrogates
from server.translation.service import TranslationOutcome
from server.translation.text_stream import TextDelta, TextStream
from server.translation.types import Translation

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ErrorDetails(BaseModel):
    """Message for people, kind and code for programs."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIError(BaseModel):
    """Body of an error response."""

    error: ErrorDetails


def _body(status: int, code: str, message: str) -> dict[str, object]:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


OPENAI = ErrorFormat(_body, OpenAIError, {InvalidRequest: 400, TextTooLong: 413})
openai_responses = OPENAI.responses


_MAX_MESSAGES = 2000
_MAX_MODEL_CHARACTERS = 200  # each event of a stream repeats the name
_MAX_LANGUAGE_CHARACTERS = 64


class TextPart(BaseModel):
    """Part of a message."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """One message of a conversation."""

    role: str
    content: str | list[TextPart] | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _end_at_first_error(cls, value: object) -> object:
        """Drop what follows the first wrong part: descriptions of 24,000 would hold the event loop."""
        if not isinstance(value, list):
            return value
        wrong = (
            index
            for index, part in enumerate(value)
            if not isinstance(part, dict) or not {"type", "text"} <= part.keys()
        )
        return value[: next(wrong, len(value)) + 1]

    @property
    def text(self) -> str:
        """The text of all parts."""
        parts = [self.content] if isinstance(self.content, str) else [part.text for part in self.content or ()]
        return replace_lone_surrogates("".join(parts))


class TranslationOptions(BaseModel):
    """Languages of the text, as codes or English names."""

    source_lang: str = Field("auto", max_length=_MAX_LANGUAGE_CHARACTERS)
    target_lang: str = Field(max_length=_MAX_LANGUAGE_CHARACTERS)


class StreamOptions(BaseModel):
    """Content of a stream."""

    include_usage: StrictBool | None = False


class ChatBody(BaseModel):
    """A text to translate, as a message. Sampling options of language models are ignored."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "kvasir:en-de", "messages": [{"role": "user", "content": "Good morning."}]}]
        }
    )

    model: str | None = Field(
        None,
        max_length=_MAX_MODEL_CHARACTERS,
        description="`kvasir:en-de`, `kvasir:de` to detect the source, or a bundle's name",
    )
    # A description of each of 50,000 wrong messages would hold the event loop.
    messages: Annotated[list[Message], FailFast()] = Field(
        max_length=_MAX_MESSAGES, description="the last user message is the text, or a known prompt with the text"
    )
    stream: StrictBool | None = False
    stream_options: StreamOptions | None = None
    translation_options: TranslationOptions | None = Field(None, description="the user message is the text itself")


class Usage(BaseModel):
    """Tokens of the source and of the translation."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AnswerMessage(BaseModel):
    """The translation."""

    role: Literal["assistant"] = "assistant"
    content: str


class Choice(BaseModel):
    """The only choice."""

    index: int = 0
    message: AnswerMessage
    finish_reason: Literal["stop", "length"]


class ChatAnswer(BaseModel):
    """A chat completion with a translation."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


def usage_of(translations: Sequence[Translation]) -> Usage:
    """Return the token counts of translations."""
    num_source = sum(each.source_tokens for each in translations)
    num_target = sum(each.target_tokens for each in translations)
    return Usage(prompt_tokens=num_source, completion_tokens=num_target, total_tokens=num_source + num_target)


def finish_reason_of(translations: Sequence[Translation]) -> Literal["stop", "length"]:
    """Return `length` if a limit ended one of the translations."""
    return "stop" if all(each.finish_reason is FinishReason.STOP for each in translations) else "length"


def event(content: dict[str, object]) -> bytes:
    """Return an event with one blank behind the colon, and no other `data:`, at which some clients split the stream."""
    data = json.dumps(content, ensure_ascii=False).replace("data:", "data\\u003a")
    return f"data: {data}\n\n".encode()


class CompletionStream(TextEvents[TranslationOutcome]):
    """A translation as chunks of a chat completion.

    It has no comments and no event names, which some clients take for text; a chunk without text is the heartbeat.
    """

    error_format = OPENAI

    def __init__(
        self,
        translate: Callable[[TextStream], Coroutine[None, None, TranslationOutcome]],
        compose: Callable[[TranslationOutcome], str] | None,
        record: RequestRecord,
        metrics: Metrics,
        head: Mapping[str, object],
        *,
        has_usage: bool,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        """`head` has the fields of every chunk. With `compose`, the content is one chunk, made of the whole outcome."""
        super().__init__(translate, record, metrics, heartbeat_seconds)
        self._compose, self._head, self._has_usage = compose, head, has_usage

    def heartbeat(self) -> bytes:
        """Return a chunk without text."""
        return self._text("")

    def events(self, deltas: Sequence[TextDelta]) -> bytes:
        """Return a chunk with all deltas, which are those of one text."""
        text = "".join(delta.text for delta in deltas)
        return self._text(text) if text and self._compose is None else b""

    async def ending(self, outcome: TranslationOutcome) -> bytes:
        """Return the composed text, the chunk with the reason of the end, and the usage if it is requested."""
        translations, events = outcome.result.translations, b""
        if self._compose is not None:
            events = self._text(self._compose(outcome))
            self.note_text()
        events += self._chunk({}, finish_reason_of(translations))
        if self._has_usage:
            events += event({**self._head, "choices": [], "usage": usage_of(translations).model_dump()})
        return events + b"data: [DONE]\n\n"

    def failure(self, body: bytes) -> bytes:
        """Return an error, which official clients raise."""
        return b"data: " + body + b"\n\n"

    def _text(self, text: str) -> bytes:
        return self._chunk({"content": text} if self.has_begun else {"role": "assistant", "content": text}, None)

    def _chunk(self, delta: dict[str, str], finish_reason: str | None) -> bytes:
        return event({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
