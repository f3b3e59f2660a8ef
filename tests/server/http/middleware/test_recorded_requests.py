"""Released memory, log lines and headers of responses, request by request."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.middleware.recorder import RequestRecorder
from server.http.responses.errors import ErrorFormats
from server.http.state import RequestRecord, ServerState
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.translation.types import Phases, TokenCounts, TranslationResult


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


def test_a_response_has_the_id_and_the_durations(recorded: _Recorded) -> None:
    recorded.request(_answering(200), request_id=b"abc:1")
    assert recorded.headers[b"x"] == b"y"
    assert recorded.headers[b"x-request-id"] == b"abc:1"
    assert recorded.headers[b"server-timing"].endswith(b"total;dur=250.0")
    assert b"connection" not in recorded.headers


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [(b"a" * 128, True), (b"a" * 129, False), (b"a b", False), (b"kvasir-0123abcd-" + b"x" * 43, False)],
)
def test_an_odd_id_is_replaced(recorded: _Recorded, given: bytes, is_kept: bool) -> None:
    recorded.request(_answering(200), request_id=given)
    assert (recorded.headers[b"x-request-id"] == given) == is_kept
    assert recorded.headers[b"x-request-id"]


def test_a_stream_has_its_durations_in_its_last_event(recorded: _Recorded) -> None:
    def stream(record: RequestRecord) -> None:
        record.is_streamed = True

    recorded.request(_answering(200, stream))
    assert b"server-timing" not in recorded.headers


def test_a_draining_server_closes_its_connections(recorded: _Recorded) -> None:
    recorded.server.draining = True
    recorded.request(_answering(200))
    assert recorded.headers[b"connection"] == b"close"
    assert [name for name, _ in recorded.sent[0]["headers"]].count(b"connection") == 1


def test_what_a_request_holds_is_released(recorded: _Recorded) -> None:
    server = recorded.server
    server.expected.add("10.0.0.1", 1)
    server.glossary_memory.add("10.0.0.1", 2)

    seen: list[tuple[str, int]] = []

    def hold(record: RequestRecord) -> None:
        seen.append((record.client, server.num_in_flight))
        server.expected.add(record.client, 100)
        server.glossary_memory.add(record.client, 200)
        record.expected_bytes, record.glossary_bytes = 100, 200

    recorded.request(_answering(200, hold))
    assert (server.expected.total, server.glossary_memory.total, server.num_in_flight) == (1, 2, 0)
    assert seen == [("10.0.0.1", 1)]


@pytest.mark.parametrize(
    ("status", "late_status", "is_refunded"),
    [(200, None, False), (399, None, False), (400, None, True), (429, None, True), (200, 504, True)],
)
def test_characters_of_failed_requests_are_returned(
    recorded: _Recorded, status: int, late_status: int | None, is_refunded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    refunded: list[RequestRecord] = []
    monkeypatch.setattr(ServerState, "refund", lambda _, record: refunded.append(record))

    def charge(record: RequestRecord) -> None:
        record.charges.append(None)  # type: ignore[arg-type]
        record.late_status = late_status

    recorded.request(_answering(status, charge))
    assert bool(refunded) == is_refunded
    recorded.request(_answering(500))
    assert len(refunded) == is_refunded, "a request without charges has nothing to return"


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


def test_a_request_that_never_answers_was_cancelled(recorded: _Recorded) -> None:
    async def leave(*_: object) -> None:
        pass

    recorded.request(leave)
    assert 'outcome="cancelled",status="499"} 1.0' in recorded.server.metrics.exposition().decode()


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


@pytest.mark.parametrize("root", ["", "/kvasir"])
def test_a_path_without_a_route_is_logged_and_no_label(
    recorded: _Recorded, root: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kvasir.request")
    recorded.request(_answering(404), "/" + "x" * 300, root=root)
    recorded.request(_answering(422), root=root)
    unknown, known = _lines(caplog)
    assert (unknown["endpoint"], len(unknown["path"])) == ("unknown", 200)
    assert known["endpoint"] == "/v1/translate"
    assert "path" not in known
    assert "xxx" not in recorded.server.metrics.exposition().decode()


def test_lines_of_refusals_are_sampled_and_those_left_out_counted(
    recorded: _Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kvasir.request")
    recorder = RequestRecorder(_answering(429), recorded.server, ErrorFormats({}))

    async def ignore(*_: object) -> Message:
        return {}

    async def refuse() -> None:
        for _ in range(15):
            await recorder({"type": "http", "method": "POST", "path": "/", "headers": []}, ignore, ignore)  # type: ignore[arg-type]

    asyncio.run(refuse())
    assert len(_lines(caplog)) == 10
    assert all("left_out" not in line for line in _lines(caplog))
