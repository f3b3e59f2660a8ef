"""OpenAI-compatible protocol: `POST /v1/chat/completions`, the text of a message, or of a known prompt, translated."""

import json
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, FailFast, Field, StrictBool, field_validator

from server.http.protocols.openai.prompts import Prompt, find_prompt
from server.http.protocols.protocol import Protocol
from server.http.requests.model_names import languages_of, listed_models
from server.http.requests.translation_call import accept, run_translation, source_codes
from server.http.responses.errors import ErrorFormat
from server.http.responses.examples import answers
from server.http.responses.text_events import HEARTBEAT_SECONDS, TextEvents
from server.http.state import RequestRecord, request_record, server_state
from server.interface.errors import InvalidRequest, TextTooLong
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.text.language_tags import means_detection
from server.text.unicode_text import replace_lone_surrogates
from server.translation.router import Router
from server.translation.service import AUTO, TranslationOutcome
from server.translation.text_stream import TextDelta, TextStream
from server.translation.types import Translation, TranslationRequest

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def _body(status: int, code: str, message: str) -> dict[str, object]:
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


OPENAI = ErrorFormat("OpenAIError", _body, {InvalidRequest: 400, TextTooLong: 413})

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


def usage_of(translations: Sequence[Translation]) -> dict[str, int]:
    """Return the token counts of the sources and of the translations."""
    num_source = sum(each.source_tokens for each in translations)
    num_target = sum(each.target_tokens for each in translations)
    return {"prompt_tokens": num_source, "completion_tokens": num_target, "total_tokens": num_source + num_target}


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
            events += event({**self._head, "choices": [], "usage": usage_of(translations)})
        return events + b"data: [DONE]\n\n"

    def failure(self, body: bytes) -> bytes:
        """Return an error, which official clients raise."""
        return b"data: " + body + b"\n\n"

    def _text(self, text: str) -> bytes:
        return self._chunk({"content": text} if self.has_begun else {"role": "assistant", "content": text}, None)

    def _chunk(self, delta: dict[str, str], finish_reason: str | None) -> bytes:
        return event({**self._head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})


router = APIRouter(tags=["OpenAI-compatible"])

# Prompts have instructions, and segments as JSON, in addition to the text.
_MAX_PROMPT_RATIO, _MAX_INSTRUCTIONS = 2, 50_000

PATH = "/v1/chat/completions"
# The last one is Alibaba's, whose clients keep the path when they change the host.
_ALIASES = {
    "/chat/completions": PATH,
    "/compatible-mode/v1/chat/completions": PATH,
    "/models": "/v1/models",
}
_COMPLETION = answers(
    "ChatAnswer",
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "kvasir:en-de",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Guten Morgen."}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8},
    },
)
_COMPLETION[200] |= {
    "content": {"text/event-stream": {}},
    "description": "The completion, or its chunks with `stream`.",
}


@router.post(PATH, responses={**_COMPLETION, **OPENAI.responses(400, 413, 429, 500, 503, 504)})
async def complete(body: ChatBody, request: Request) -> Response:
    """Translate the last user message.

    The languages are those of `model` or of `translation_options`; without either, those that the prompt of a known
    translation program names. Other prompts are rejected.
    """
    service, model_router = server_state(request).accept()
    _check_length(body, service.max_text_characters)
    prompt, source, target = _read(body, model_router)
    translation = TranslationRequest(prompt.texts, "", "")
    completion_id = f"chatcmpl-{request_record(request).id}"
    created, model = int(time.time()), body.model or f"kvasir:{target}"
    if body.stream:
        service, translation = accept(request, translation)
        return CompletionStream(
            partial(service.translate, translation, source, target),
            None if prompt.compose is None else partial(_content, prompt),
            request_record(request),
            server_state(request).metrics,
            {"id": completion_id, "object": "chat.completion.chunk", "created": created, "model": model},
            has_usage=bool(body.stream_options and body.stream_options.include_usage),
        )
    outcome = await run_translation(request, translation, source, target)
    translations = list(outcome.result.translations)
    message = {"role": "assistant", "content": _content(prompt, outcome)}
    return JSONResponse(
        {
            "id": completion_id,
            "object": "chat.completion",
            "created": created,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason_of(translations)}],
            "usage": usage_of(translations),
        }
    )


def _check_length(body: ChatBody, max_characters: int | None) -> None:
    """Raise `TextTooLong` for messages that no prompt of this length needs, before templates are compared."""
    num_characters = sum(len(message.text) for message in body.messages)
    if max_characters is not None and num_characters > (
        limit := _MAX_PROMPT_RATIO * max_characters + _MAX_INSTRUCTIONS
    ):
        raise TextTooLong(f"all messages together must have at most {limit} characters. Given: {num_characters}")


def _read(body: ChatBody, model_router: Router) -> tuple[Prompt, str, str | None]:
    """Return the prompt, its source language or `AUTO`, and its target language. Raises `InvalidRequest`."""
    user = next((message.text for message in reversed(body.messages) if message.role == "user"), None)
    if user is None:
        raise InvalidRequest("`messages` must have a user message with the text to translate")
    if body.translation_options is not None:
        options = body.translation_options
        return Prompt((user,)), _source(options.source_lang), options.target_lang
    system = "\n".join(message.text for message in body.messages if message.role in ("system", "developer"))
    prompt = find_prompt(system, user)
    named = None if body.model is None else languages_of(body.model, model_router)
    if named is not None:
        return prompt or Prompt((user,)), *named
    if prompt is None:
        example = model_router.routes[0]
        raise InvalidRequest(
            "this server translates and follows no instructions: the prompt is not one of a known translation program; "
            f"set `model` to kvasir:{example.source}-{example.target} or kvasir:{example.target} (source detected), "
            "and send the text alone as the user message"
        )
    return prompt, _source(prompt.source), prompt.target


def _source(code: str | None) -> str:
    return AUTO if code is None or means_detection(code) else code


def _content(prompt: Prompt, outcome: TranslationOutcome) -> str:
    texts = [translation.text for translation in outcome.result.translations]
    return texts[0] if prompt.compose is None else prompt.compose(texts, source_codes(outcome, prompt.source))


@router.get("/v1/models", include_in_schema=False)
async def models(request: Request) -> JSONResponse:
    """Return the names that `model` may have."""
    return JSONResponse({"object": "list", "data": listed_models(server_state(request).accept()[1])})


OPENAI_PROTOCOL = Protocol(
    name="openai",
    routers=(router,),
    error_format=OPENAI,
    paths=(PATH, "/v1/models", *_ALIASES),
    aliases=_ALIASES,
    key_headers=("api-key",),
)
