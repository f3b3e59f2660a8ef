"""The native protocol's stream: events in order, errors in their place, and nothing kept for who reads slowly."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel
from starlette.testclient import TestClient
from starlette.types import Message

from bundle.loading import Bundle
from server.http.app import create_app
from server.http.protocols.native.fields import EventStream
from server.http.state import RequestRecord
from server.interface.errors import EngineFailed, QueueFull
from server.interface.request import Completion, Request
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.service import TranslationOutcome
from server.translation.text_stream import TextStream
from server.translation.types import TranslationRequest
from tests.fakes.echo import EchoGenerator
from tests.fakes.event_stream import read_events, texts_of

_TEXTS = ["  Good morning.  How are you today?\r\n\r\n", "", "---\n\nWhere is the dog?\n", "Tea."]


class StreamingEcho(EchoGenerator):
    """Streams every token, and can fail after some of them."""

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """The echo, token by token."""
        self.batches.append(list(requests))
        longest = max(len(request.source) for request in requests)
        for num_tokens in range(1, longest):
            for request in requests:
                tokens = request.source[:-1].tolist()
                if request.on_progress is not None and num_tokens <= len(tokens):
                    request.on_progress(tokens[:num_tokens], num_tokens == len(tokens))
            for _ in range(4):  # lets the reader run
                await asyncio.sleep(0)
            if self.error is not None and num_tokens == 3:
                raise self.error
        return [self._complete(request) for request in requests]


@pytest.fixture
def streaming_echo(echo_bundle: Bundle) -> StreamingEcho:
    return StreamingEcho(echo_bundle)


@pytest.fixture
def client(streaming_echo: StreamingEcho) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [streaming_echo])) as client:
        yield client


def test_text_events_precede_the_plain_answer(client: TestClient) -> None:
    plain = client.post("/v1/translate", json={"text": _TEXTS, "return_scores": True, "beam_size": 2})
    streamed = client.post(
        "/v1/translate", json={"text": _TEXTS, "return_scores": True, "beam_size": 2, "stream": True}
    )
    assert streamed.status_code == 200
    assert streamed.headers["Content-Type"].startswith("text/event-stream")
    assert streamed.headers["X-Accel-Buffering"] == "no"
    assert streamed.headers["Cache-Control"] == "no-store"
    assert "Content-Length" not in streamed.headers
    assert "Server-Timing" not in streamed.headers
    *pieces, (name, last) = read_events(streamed.text)
    assert {piece_name for piece_name, _ in pieces} == {"text"}
    assert len(pieces) > 3  # all texts start at once, and a slow client gets larger events
    assert name == "done"
    timings = last.pop("timings")
    assert isinstance(timings, dict)
    assert set(timings) == {"tokenize", "queue", "encode", "decode", "total"}
    assert timings["decode"] == pytest.approx(7.0)
    assert last == plain.json()
    assert texts_of(streamed.text, len(_TEXTS)) == _TEXTS


def test_a_full_queue_is_429_for_a_stream_too(echo: EchoGenerator) -> None:
    echo.error = QueueFull("full", 3.2)
    with TestClient(create_app(Settings(), [echo])) as client:
        answer = client.post("/v1/translate", json={"text": "***\nTea.", "stream": True})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "4")
    assert answer.json()["error"]["code"] == "queue_full"


def test_an_error_after_the_first_event_is_the_last_event(client: TestClient, streaming_echo: StreamingEcho) -> None:
    streaming_echo.error = EngineFailed("the device is gone")
    answer = client.post("/v1/translate", json={"text": "The quick brown fox jumps.", "stream": True})
    assert answer.status_code == 200
    *pieces, last = read_events(answer.text)
    assert pieces
    assert last == ("error", {"error": {"code": "engine_failed", "message": "the device is gone"}})
    # The response had the status 200; the log and the metrics have the final status.
    metrics = client.get("/metrics").text
    assert 'endpoint="/v1/translate",outcome="error",status="500"' in metrics


def test_streams_are_timed(client: TestClient) -> None:
    client.post("/v1/translate", json={"text": "The quick brown fox jumps.", "stream": True})
    client.post("/v1/translate", json={"text": "The quick brown fox jumps."})
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }
    assert samples["kvasir_stream_first_event_seconds_count"] == 1
    assert samples["kvasir_stream_event_gap_seconds_count"] > 0


class _Nothing(BaseModel):
    """An empty answer."""


@dataclass
class Connection:
    """The client of one stream: events received, whether it reads, whether it is connected."""

    sent: list[Message] = field(default_factory=list)
    takes: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    got: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        self.got.set()
        if message.get("more_body") is False:
            self.gone.set()  # as a server does after a complete response
        await self.takes.wait()

    @property
    def body(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent).decode()


class Stream:
    """A stream over an echo, its connection, and its record."""

    def __init__(self, echo: EchoGenerator, text: str, heartbeat_seconds: float = 1000.0) -> None:
        self.echo = echo
        echo.gate = asyncio.Event()
        self.connection = Connection()
        self.record = RequestRecord("a test")
        translator = Pipeline(echo, TranslationLimits())

        async def translate(feed: TextStream) -> TranslationOutcome:
            result = await translator.translate(TranslationRequest((text,), "en", "de"), feed)
            return TranslationOutcome(result, (), ())

        self.response = EventStream(translate, lambda _: _Nothing(), self.record, Metrics(), heartbeat_seconds)

    def begin(self) -> asyncio.Task[None]:
        scope = {"type": "http", "method": "POST", "headers": []}
        return asyncio.create_task(self.response(scope, self.connection.receive, self.connection.send))

    async def request(self) -> Request:
        await self.echo.entered.wait()
        [request] = self.echo.batches[-1]
        return request

    def open_the_gate(self) -> None:
        assert self.echo.gate is not None
        self.echo.gate.set()


def _run(scenario: Callable[[], "asyncio.Future[None] | object"]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20.0))  # type: ignore[arg-type]


def test_a_silent_stream_sends_heartbeats_without_data(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        stream = Stream(echo, "Tea.", heartbeat_seconds=0.001)
        stream.connection.takes.set()
        task = stream.begin()
        while len(stream.connection.sent) < 4:
            stream.connection.got.clear()
            await stream.connection.got.wait()
        assert stream.connection.sent[0]["type"] == "http.response.start"
        assert stream.connection.sent[1]["body"].startswith(b": ")
        stream.open_the_gate()
        await task
        assert [name for name, _ in read_events(stream.connection.body)] == ["text", "done"]

    _run(scenario)


def test_one_event_waits_for_a_slow_reader(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        stream = Stream(echo, "The quick brown fox jumps.")
        task = stream.begin()
        request = await stream.request()
        tokens = request.source[:-1].tolist()
        assert request.on_progress is not None
        request.on_progress(tokens[:3], False)
        await stream.connection.got.wait()  # the headers, which the reader does not read
        for num_tokens in range(4, len(tokens)):
            request.on_progress(tokens[:num_tokens], False)
            await asyncio.sleep(0)
        assert len(stream.connection.sent) == 1
        stream.connection.takes.set()
        stream.open_the_gate()
        await task
        names = [name for name, _ in read_events(stream.connection.body)]
        assert len(names) <= 4
        assert names[-1] == "done"
        assert texts_of(stream.connection.body, 1) == ["The quick brown fox jumps."]

    _run(scenario)


@pytest.mark.parametrize("num_streamed", [0, 3])
def test_a_client_that_disconnects_cancels_its_translation(echo: EchoGenerator, num_streamed: int) -> None:
    async def scenario() -> None:
        stream = Stream(echo, "The quick brown fox jumps.")
        stream.connection.takes.set()
        task = stream.begin()
        request = await stream.request()
        if num_streamed:
            assert request.on_progress is not None
            request.on_progress(request.source[:num_streamed].tolist(), False)
            await stream.connection.got.wait()
        stream.connection.gone.set()
        await task
        assert echo.num_cancelled == 1
        if num_streamed:
            assert stream.record.late_status == 499
        else:
            assert stream.connection.sent[0]["status"] == 499

    _run(scenario)
