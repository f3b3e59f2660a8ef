"""Chunks of a stream by themselves: when they begin, what a failure leaves, and what is measured."""

import asyncio
import json
from collections.abc import Callable, Coroutine

import pytest
from starlette.types import Message

from server.http.protocols.openai.chat import CompletionStream, finish_reason_of, usage_of
from server.http.protocols.openai.chat import Message as ChatMessage
from server.http.state import RequestRecord
from server.interface.errors import QueueFull
from server.interface.request import FinishReason
from server.operations.metrics import Metrics
from server.translation.service import TranslationOutcome
from server.translation.text_stream import TextStream
from server.translation.types import Phases, TokenCounts, Translation, TranslationResult
from tests.fakes.event_loop import until

Translate = Callable[[TextStream], Coroutine[None, None, TranslationOutcome]]


def _translation(text: str, reason: FinishReason = FinishReason.STOP) -> Translation:
    return Translation(text, 3, 4, reason, 0.0)


def _outcome(text: str, reason: FinishReason = FinishReason.STOP) -> TranslationOutcome:
    result = TranslationResult([_translation(text, reason)], Phases(), TokenCounts.of([(3, 4)]), num_splits=0)
    return TranslationOutcome(result, (), ())


class _Stream:
    """The messages of a stream for a translation."""

    def __init__(
        self,
        translate: Translate,
        compose: Callable[[TranslationOutcome], str] | None = None,
        *,
        has_usage: bool = False,
        sent: list[Message] | None = None,
    ) -> None:
        self.record, self.metrics = RequestRecord("id"), Metrics()
        self.sent = [] if sent is None else sent
        self.raised: ValueError | None = None
        stream = CompletionStream(
            translate, compose, self.record, self.metrics, {"id": "x"}, has_usage=has_usage, heartbeat_seconds=0.01
        )

        async def receive() -> Message:
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Message) -> None:
            self.sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
        try:
            asyncio.run(stream(scope, receive, send))
        except ValueError as error:
            self.raised = error

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    @property
    def is_complete(self) -> bool:
        return not self.sent[-1].get("more_body", False)

    @property
    def events(self) -> list[dict[str, object]]:
        lines = [line.removeprefix("data: ") for line in self.body.split("\n\n") if line]
        return [json.loads(line) for line in lines if line != "[DONE]"]

    @property
    def deltas(self) -> list[dict[str, str]]:
        return [event["choices"][0]["delta"] for event in self.events if event.get("choices")]  # type: ignore[index]


async def _two_texts(stream: TextStream) -> TranslationOutcome:
    stream.add_text(0, "Tea. ")
    for _ in range(5):
        await asyncio.sleep(0)
    stream.add_text(1, "Water.")
    return _outcome("Tea. Water.", FinishReason.LENGTH)


def test_the_first_chunk_has_the_role_and_the_last_one_the_reason() -> None:
    sent = _Stream(_two_texts, has_usage=True)
    assert "".join(delta.get("content", "") for delta in sent.deltas) == "Tea. Water."
    assert [("role" in delta, "content" in delta) for delta in sent.deltas] == [
        (True, True),
        *[(False, True)] * (len(sent.deltas) - 2),
        (False, False),
    ]
    *_, last, usage = sent.events
    assert last["choices"] == [{"index": 0, "delta": {}, "finish_reason": "length"}]
    assert usage == {
        "id": "x",
        "choices": [],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    }
    assert sent.body.endswith("data: [DONE]\n\n")
    assert sent.is_complete
    assert "usage" not in _Stream(_two_texts).events[-1]


def test_the_record_has_the_outcome_and_that_it_was_streamed() -> None:
    sent = _Stream(_two_texts)
    assert sent.record.is_streamed
    assert sent.record.result is not None
    assert sent.record.late_status is None
    metrics = sent.metrics.exposition().decode()
    assert "kvasir_stream_first_event_seconds_count 1.0" in metrics
    assert f"kvasir_stream_event_gap_seconds_count {len(sent.deltas) - 2}.0" in metrics


def test_an_outcome_that_is_composed_is_one_chunk() -> None:
    sent = _Stream(_two_texts, lambda outcome: outcome.result.translations[0].text.upper())
    assert [delta.get("content") for delta in sent.deltas] == ["TEA. WATER.", None]


def test_while_nothing_is_translated_chunks_without_text_are_sent() -> None:
    messages: list[Message] = []

    async def translate(stream: TextStream) -> TranslationOutcome:
        await until(lambda: len(messages) > 2)
        return await _two_texts(stream)

    sent = _Stream(translate, sent=messages)
    contents = [delta["content"] for delta in sent.deltas[:-1]]
    assert contents[0] == ""
    assert "".join(contents) == "Tea. Water."
    assert "kvasir_stream_first_event_seconds_count 1.0" in sent.metrics.exposition().decode()


def test_an_error_before_the_first_chunk_is_an_ordinary_response() -> None:
    async def fail(_: TextStream) -> TranslationOutcome:
        raise QueueFull("full", 3.0)

    sent = _Stream(fail)
    assert sent.status == 429
    assert json.loads(sent.body)["error"]["code"] == "queue_full"
    assert not sent.record.is_streamed


@pytest.mark.parametrize(
    ("error", "code", "late"), [(QueueFull("full", 3.0), "queue_full", 429), (ValueError("defect"), None, None)]
)
def test_an_error_behind_the_first_chunk_ends_the_stream(error: Exception, code: str | None, late: int | None) -> None:
    async def fail(stream: TextStream) -> TranslationOutcome:
        stream.add_text(0, "Tea. ")
        for _ in range(5):
            await asyncio.sleep(0)
        raise error

    sent = _Stream(fail)
    assert sent.status == 200
    first, last = sent.events
    assert "Tea. " in str(first)
    assert isinstance(last["error"], dict)
    assert code in (None, last["error"]["code"])
    assert "defect" not in sent.body
    assert (sent.record.late_status, sent.is_complete) == (late, True)
    assert (sent.raised is error) == (late is None)


def test_a_limit_that_ended_one_text_is_the_reason_of_all() -> None:
    stopped, cut = _translation("a"), _translation("b", FinishReason.LENGTH)
    assert finish_reason_of([stopped, stopped]) == "stop"
    assert finish_reason_of([stopped, cut]) == "length"
    assert finish_reason_of([stopped, _translation("c", FinishReason.REPETITION)]) == "length"
    assert usage_of([stopped, cut]).model_dump() == {"prompt_tokens": 6, "completion_tokens": 8, "total_tokens": 14}


def test_parts_of_a_message_are_one_text() -> None:
    parts = [{"type": "text", "text": "Tea", "cache_control": {}}, {"type": "text", "text": ".\ud800"}]
    message = ChatMessage.model_validate({"role": "user", "content": parts})
    assert message.text == "Tea.\ufffd"
