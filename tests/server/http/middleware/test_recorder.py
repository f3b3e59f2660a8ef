"""Released memory, log lines and metrics of requests."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.app import create_app
from server.http.middleware.recorder import RequestRecorder
from server.http.responses.errors import ErrorFormats
from server.http.state import RequestRecord, ServerState
from server.interface.errors import QueueFull
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.translation.types import Phases, TokenCounts, TranslationResult
from tests.fakes.echo import EchoGenerator


class _Recorded:
    """Requests through one recorder, with a clock that advances by a quarter of a second at each look."""

    def __init__(self) -> None:
        self.server = ServerState(Settings(), Metrics())
        self.sent: list[Message] = []
        self.now = 0.0

    def _clock(self) -> float:
        self.now += 0.25
        return self.now

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    def request(self, app: ASGIApp, path: str = "/v1/translate", request_id: bytes = b"", root: str = "") -> None:
        async def receive() -> Message:
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            self.sent.append(message)

        headers = [(b"x-request-id", request_id)] if request_id else []
        scope = {"type": "http", "method": "POST", "path": root + path, "root_path": root, "headers": headers}
        recorder = RequestRecorder(app, self.server, ErrorFormats({}), ["/v1/translate"], self._clock)
        asyncio.run(recorder({**scope, "client": ("10.0.0.1", 5)}, receive, send))


def _answering(status: int, change: Callable[[RequestRecord], None] = lambda _: None) -> ASGIApp:
    async def app(scope: Scope, _: Receive, send: Send) -> None:
        change(scope["state"]["record"])
        await send({"type": "http.response.start", "status": status, "headers": [(b"x", b"y")]})
        await send({"type": "http.response.body", "body": b""})

    return app


@pytest.fixture
def recorded() -> _Recorded:
    return _Recorded()


def _lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record) for record in caplog.records if record.name == "kvasir.request"]


def test_what_a_request_holds_is_released(recorded: _Recorded) -> None:
    server = recorded.server
    server.expected.add("10.0.0.1", 1)
    server.glossary_memory.add("10.0.0.1", 2)

    seen: list[tuple[str, int]] = []

    def hold(record: RequestRecord) -> None:
        seen.append((record.client, server.num_in_flight))
        record.resources.enter_context(server.expected.holding(record.client, 100))
        record.resources.enter_context(server.glossary_memory.holding(record.client, 200))

    recorded.request(_answering(200, hold))
    assert (server.expected.total, server.glossary_memory.total, server.num_in_flight) == (1, 2, 0)
    assert seen == [("10.0.0.1", 1)]


@pytest.mark.parametrize("has_begun", [False, True])
def test_an_exception_is_an_internal_error(
    recorded: _Recorded, has_begun: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_: Scope, __: Receive, send: Send) -> None:
        if has_begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("secret")

    recorded.request(fail)
    assert [each["status"] for each in recorded.sent if "status" in each] == [200 if has_begun else 500]
    assert b"secret" not in b"".join(each.get("body", b"") for each in recorded.sent)
    assert 'outcome="error",status="500"} 1.0' in recorded.server.metrics.exposition().decode()
    assert any(line["exc_info"] for line in _lines(caplog))


def test_routine_requests_are_logged_at_the_level_debug_only(
    recorded: _Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    def translate(record: RequestRecord) -> None:
        record.num_texts, record.num_characters, record.model = 2, 30, "en-de"
        record.result = TranslationResult([], Phases(0.001, 0.002), TokenCounts.of([(3, 4), (5, 6)]), num_splits=0)

    caplog.set_level(logging.DEBUG, "kvasir.request")
    for app in (_answering(200), _answering(304), _answering(404), _answering(200, translate)):
        recorded.request(app)
    lines = _lines(caplog)
    assert [line["levelname"] for line in lines] == ["DEBUG", "DEBUG", "INFO", "INFO"]
    assert "texts" not in lines[0]
    names = ("texts", "characters", "model", "sentences", "source_tokens", "target_tokens", "queue_milliseconds")
    assert [lines[3][name] for name in names] == [2, 30, "en-de", 2, 8, 10, 2]
    assert (lines[3]["milliseconds"], lines[3]["outcome"]) == (500, "ok")


def test_a_refused_flood_leaves_ten_lines_and_is_counted_in_the_metrics(
    echo: EchoGenerator, caplog: pytest.LogCaptureFixture
) -> None:
    echo.error = QueueFull("full", 1.0)
    with caplog.at_level(logging.INFO, "kvasir.request"), TestClient(create_app(Settings(), [echo])) as client:
        for _ in range(30):
            client.post("/v1/translate", json={"text": "Tea."})
        metrics = client.get("/metrics").text
    lines = [record for record in caplog.records if record.name == "kvasir.request"]
    assert len(lines) == 10
    assert 'outcome="rejected",status="429"} 30.0' in metrics
