"""Limits of one connection, with a clock that tests set."""

import asyncio
import json
import logging
from collections.abc import Callable
from functools import partial
from unittest.mock import Mock

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from server.http.connection import ConnectionTable, LimitedConnection
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from tests.fakes.event_loop import in_event_loop

SETTINGS = Settings(header_timeout_seconds=10, body_timeout_seconds=30, write_timeout_seconds=20)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\n"


class _Loop:
    """The running event loop, with a clock of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self._timers: list[tuple[float, Callable[[], None], Mock]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(asyncio.get_running_loop(), name)

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., None], *arguments: object) -> Mock:
        handle = Mock(spec=asyncio.TimerHandle)
        self._timers.append((self.now + delay, partial(callback, *arguments), handle))
        return handle

    def call_soon(self, callback: Callable[..., None], *arguments: object) -> None:
        callback(*arguments)

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [timer for timer in self._timers if timer[0] <= end]:
            timer = min(due, key=lambda each: each[0])
            self._timers.remove(timer)
            self.now = timer[0] + 1e-6  # a timer is never early
            if not timer[2].cancel.called:
                timer[1]()
        self.now = end


class _Client:
    """The other end of a connection to an application that reads bodies and answers "ok" once `may_answer`."""

    def __init__(
        self, table: ConnectionTable | None = None, answer: bytes = b"ok", settings: Settings = SETTINGS
    ) -> None:
        self.loop, self.metrics, self.unsent, self.is_aborted = _Loop(), Metrics(), 0, False
        self.bodies: list[bytes] = []
        self.scopes: list[Scope] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self._answer = answer
        self._is_closed = False
        config = uvicorn.Config(self._app, log_config=None, ws="none", lifespan="off")
        config.load()
        config.loaded_app = self._app
        self.connection = LimitedConnection(
            settings,
            self.metrics,
            ConnectionTable(10, 1) if table is None else table,
            config=config,
            server_state=ServerState(),
            app_state={},
            _loop=self.loop,
        )
        self.transport = Mock(spec=asyncio.Transport)
        self.transport.get_extra_info.return_value = None
        self.transport.is_closing.side_effect = lambda: self.is_closed
        self.transport.get_write_buffer_size.side_effect = lambda: self.unsent
        self.transport.abort.side_effect = lambda: self.connection.connection_lost(None)
        self.connection.connection_made(self.transport)

    @property
    def is_closed(self) -> bool:
        return bool(self.transport.close.called or self.transport.abort.called)

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            if not self.is_closed:
                self.connection.data_received(part)
        for _ in range(10):
            await asyncio.sleep(0)

    @property
    def responses(self) -> list[tuple[int, str]]:
        """The status of each response, and the code of its error or its body."""
        found = []
        for written in b"".join(call.args[0] for call in self.transport.write.call_args_list).split(b"HTTP/1.1 ")[1:]:
            head, _, body = written.partition(b"\r\n\r\n")
            code = json.loads(body)["error"]["code"] if body.startswith(b"{") else body.decode()
            found.append((int(head.split()[0]), code))
        return found

    @property
    def statuses(self) -> list[int]:
        return [status for status, _ in self.responses]

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.bodies.append(body)
        await self.may_answer.wait()
        headers = [(b"content-length", b"%d" % len(self._answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": self._answer})


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


@pytest.mark.parametrize("size", [500, 10_000, 100_000])
@pytest.mark.parametrize(("num_bytes", "statuses"), [(65_000, []), (90_000, [431])])
@in_event_loop
async def test_a_head_that_grows_beyond_its_limit_is_rejected(size: int, num_bytes: int, statuses: list[int]) -> None:
    for head in (b"GET /" + b"a" * num_bytes, b"GET / HTTP/1.1\r\nX: " + b"a" * num_bytes):
        client = _Client()
        await client.send(GET)
        await client.send(*_pieces(head, size))
        assert client.statuses == [200, *statuses]
        assert client.is_closed == bool(statuses)


@pytest.mark.parametrize("size", [64, 4000])
@in_event_loop
async def test_small_chunks_are_a_body_and_their_extensions_are_limited(size: int) -> None:
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    client = _Client()
    await client.send(*_pieces(head + b"1\r\na\r\n" * 2000 + b"0\r\n\r\n", size))
    assert (client.statuses, client.bodies) == ([200], [b"a" * 2000])
    client = _Client()
    await client.send(head, *_pieces((b"1;" + b"x" * 50 + b"\r\na\r\n") * 3000, size))
    assert client.statuses == [431]


@in_event_loop
async def test_trailers_are_limited_and_change_no_header() -> None:
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
    client = _Client()
    await client.send(head, b"X: late\r\n\r\n", GET)
    assert client.statuses == [200, 200]
    assert all(name != b"x" for scope in client.scopes for name, _ in scope["headers"])
    client = _Client()
    await client.send(head, *_pieces(b"X: " + b"a" * 90_000, 1000))
    assert client.statuses == [431]


@in_event_loop
async def test_a_head_and_a_body_must_arrive_in_time() -> None:
    client = _Client()
    await client.send(b"GET / HT")
    client.loop.advance(9.7)
    assert not client.is_closed
    client.loop.advance(1)
    assert (client.responses, client.is_closed) == ([(408, "request_timeout")], True)
    later = _Client()
    await later.send(GET)
    later.loop.advance(4)
    await later.send(b"GET / HT")
    later.loop.advance(9.7)
    assert later.statuses == [200]
    later.loop.advance(1)
    assert later.statuses == [200, 408]


@pytest.mark.parametrize(("num_bytes", "seconds"), [(0, 30), (200_000, 50)])
@in_event_loop
async def test_the_time_for_a_body_grows_with_what_is_received(num_bytes: int, seconds: float) -> None:
    client = _Client()
    await client.send(POST + b"Content-Length: 1000000\r\n\r\n")
    client.connection.flow.resume_reading()
    await client.send(b"a" * num_bytes)
    client.connection.flow.resume_reading()
    client.loop.advance(seconds - 0.5)
    assert not client.is_closed
    client.loop.advance(1)
    assert client.responses == [(408, "request_timeout")]
    assert not client.bodies or client.is_closed


@in_event_loop
async def test_time_in_which_the_server_does_not_read_is_not_the_clients() -> None:
    client = _Client()
    await client.send(POST + b"Content-Length: 100\r\n\r\n")
    client.connection.flow.pause_reading()
    client.loop.advance(30)
    client.connection.flow.resume_reading()
    client.loop.advance(29.5)
    assert not client.is_closed
    client.loop.advance(1)
    assert client.statuses == [408]


@in_event_loop
async def test_a_response_that_makes_no_progress_ends_the_connection() -> None:
    client = _Client()
    client.may_answer.clear()
    client.unsent = 300
    await client.send(GET)
    client.connection.pause_writing()
    for unsent in (200, 100):
        client.unsent = unsent
        client.loop.advance(15)
        assert not client.is_closed
    client.loop.advance(4)
    assert not client.is_closed
    client.loop.advance(1.5)
    assert client.transport.abort.called
    assert b"kvasir_connections_aborted_total 1.0" in client.metrics.exposition()


@in_event_loop
async def test_beyond_the_limit_of_connections_probes_and_metrics_are_answered() -> None:
    table = ConnectionTable(1, 2)
    first = _Client(table)
    first.may_answer.clear()
    await first.send(GET)
    for path, response in (
        ("/health/live", (200, "ok")),
        ("/metrics", (200, "ok")),
        ("/", (503, "too_many_connections")),
    ):
        client = _Client(table)
        await client.send(GET.replace(b" / ", f" {path} ".encode()))
        assert client.responses == [response], path
        client.connection.connection_lost(None)
    others = []
    for _ in range(2):
        others.append(_Client(table))
        others[-1].may_answer.clear()
        await others[-1].send(GET.replace(b" / ", b" /health/ready "))
    assert _Client(table).transport.abort.called
    assert not any(each.is_closed for each in (first, *others))


@in_event_loop
async def test_beyond_all_room_the_connection_that_was_idle_for_longest_is_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    table = ConnectionTable(2, 1)
    first, second, third = (_Client(table) for _ in range(3))
    await first.send(GET)  # it has been idle since its response
    fourth, fifth = _Client(table), _Client(table)
    assert [each.is_closed for each in (first, second, third, fourth, fifth)] == [False, True, True, False, False]
    assert [vars(record)["closed"] for record in caplog.records] == [1]


@pytest.mark.parametrize("origins", [[], ["https://example.com"]])
@in_event_loop
async def test_an_error_below_the_application_is_that_of_the_api_and_ends_the_connection(origins: list[str]) -> None:
    client = _Client(settings=Settings(cors_origins=origins))
    await client.send(b"GET /?q=" + b"a" * 100_000)
    (call,) = client.transport.write.call_args_list
    head, _, body = call.args[0].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert b"\r\nconnection: close" in head
    assert b"\r\ncontent-length: %d" % len(body) in head
    assert (b"\r\naccess-control-allow-origin: *" in head) == bool(origins)  # the origin of the request is unknown
    assert json.loads(body)["error"]["code"] == "headers_too_large"
