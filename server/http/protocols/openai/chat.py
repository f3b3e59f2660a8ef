"""OpenAI-compatible protocol: `POST /v1/chat/completions`, the text of a message, or of a known prompt, translated."""

import time
from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel

from server.http.protocols.openai.fields import (
    OPENAI,
    AnswerMessage,
    ChatAnswer,
    ChatBody,
    Choice,
    CompletionStream,
    finish_reason_of,
    openai_responses,
    usage_of,
)
from server.http.protocols.openai.prompts import Prompt, find_prompt
from server.http.protocols.protocol import Protocol
from server.http.requests.compatible_translation import source_codes
from server.http.requests.model_names import languages_of, model_names
from server.http.requests.translation_call import accept, run_translation
from server.http.state import request_record, server_state
from server.interface.errors import InvalidRequest, TextTooLong
from server.text.language_tags import means_detection
from server.translation.router import Router
from server.translation.service import AUTO, TranslationOutcome
from server.translation.types import TranslationRequest

router = APIRouter(tags=["OpenAI-compatible"])

# Prompts have instructions, and segments as JSON, beside the text.
_MAX_PROMPT_RATIO, _MAX_INSTRUCTIONS = 2, 50_000

# The last one is Alibaba's, whose clients keep the path when they change the host.
PATHS = ("/v1/chat/completions", "/chat/completions", "/compatible-mode/v1/chat/completions")


@router.post(PATHS[1], response_model=ChatAnswer, include_in_schema=False)
@router.post(PATHS[2], response_model=ChatAnswer, include_in_schema=False)
@router.post(
    PATHS[0],
    response_model=ChatAnswer,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "The completion, or its chunks with `stream`."},
        **openai_responses(400, 413, 429, 500, 503, 504),
    },
)
async def complete(body: ChatBody, request: Request) -> ChatAnswer | Response:
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
    message = AnswerMessage(content=_content(prompt, outcome))
    return ChatAnswer(
        id=completion_id,
        created=created,
        model=model,
        choices=[Choice(message=message, finish_reason=finish_reason_of(translations))],
        usage=usage_of(translations),
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


_models_router = APIRouter(tags=["OpenAI-compatible"])

_MODELS_PATHS = ("/v1/models", "/models")


class Model(BaseModel):
    """Name of a model."""

    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = "kvasir"


class Models(BaseModel):
    """Names that `model` may have."""

    object: str = "list"
    data: list[Model]


@_models_router.get(_MODELS_PATHS[0], include_in_schema=False)
@_models_router.get(_MODELS_PATHS[1], include_in_schema=False)
async def models(request: Request) -> Models:
    """Return the names that `model` may have."""
    _, model_router = server_state(request).accept()
    return Models(data=[Model(id=name) for name in model_names(model_router)])


OPENAI_PROTOCOL = Protocol(
    name="openai",
    routers=(router, _models_router),
    error_format=OPENAI,
    paths=(*PATHS, *_MODELS_PATHS),
    key_headers=("api-key",),
)
