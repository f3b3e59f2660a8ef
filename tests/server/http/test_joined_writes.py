"""Responses leave in as few writes as possible, and only valid ones leave."""

import asyncio
import contextlib
import gc
import logging
import weakref
from collections.abc import Awaitable, Callable
from unittest.mock import Mock

import pytest
import uvicorn
import uvloop
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from server.http.connection import limited_connection
from server.http.connection_limits import ConnectionLimits
from server.http.connection_table import ConnectionTable
from server.http.joined_writes import JoinedConnection
from server.http.request_turns import RequestTurns
from server.http.requests.disconnect import unless_disconnected
from server.interface.errors import ClientGone
from server.operations.metrics import Metrics

App = Callable[[Scope, Receive, Send], Awaitable[None]]
_GET = b"GET /a%20b?c=d HTTP/1.1\r\nHost: x\r\n\r\n"


def _written(app: App, request: bytes = _GET, *, loses_connection: bool = False) -> list[bytes]:
    """Return what a connection writes, write by write. The loss of the connection comes while the application waits."""

    async def run() -> list[bytes]:
        config = uvicorn.Config(app, log_config=None, ws="none", lifespan="off")
        config.load()
        config.loaded_app = app
        connection = JoinedConnection(config, ServerState(), {})
        transport = Mock(spec=asyncio.Transport)
        transport.get_extra_info.return_value = None
        transport.is_closing.return_value = False
        connection.connection_made(transport)
        connection.data_received(request)
        await asyncio.sleep(0)
        if loses_connection:
            connection.connection_lost(None)
        while connection.tasks:
            await asyncio.gather(*connection.tasks)
            await asyncio.sleep(0)
        return [call.args[0] for call in transport.write.call_args_list]

    return asyncio.run(run())


def _app(headers: list[tuple[bytes, bytes]], *parts: bytes) -> App:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for index, part in enumerate(parts):
            await send({"type": "http.response.body", "body": part, "more_body": index < len(parts) - 1})

    return app


def test_head_and_body_are_one_write() -> None:
    [response] = _written(_app([(b"content-length", b"5")], b"hello"))
    assert response == b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


def test_a_body_of_unknown_length_leaves_in_chunks_as_it_comes() -> None:
    first, second, last = _written(_app([], b"hel", b"lo", b""))
    assert first == b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n"
    assert (second, last) == (b"2\r\nlo\r\n", b"0\r\n\r\n")


def test_a_body_that_the_application_calls_chunked_leaves_in_chunks() -> None:
    [response] = _written(_app([(b"transfer-encoding", b"chunked")], b"hello"))
    assert response == b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


def test_requests_that_follow_each_other_at_once_are_answered_in_order() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        answer = f"{scope['path']}?{scope['query_string'].decode()}".encode()
        await _app([(b"content-length", b"%d" % len(answer))], answer)(scope, receive, send)

    responses = _written(app, _GET + _GET.replace(b"b?c", b"e?f"))
    assert [response.partition(b"\r\n\r\n")[2] for response in responses] == [b"/a b?c=d", b"/a e?f=d"]


def test_a_head_request_and_an_old_client_get_what_http_requires() -> None:
    [head] = _written(_app([(b"content-length", b"5")], b"hello"), _GET.replace(b"GET", b"HEAD"))
    assert head.endswith(b"content-length: 5\r\n\r\n")
    [old] = _written(_app([(b"content-length", b"5")], b"hello"), _GET.replace(b"1.1", b"1.0"))
    assert b"connection: close\r\n" in old


@pytest.mark.parametrize(
    ("headers", "parts"),
    [
        ([(b"x", b"a\r\nb: c")], (b"",)),
        ([(b"x: y", b"a")], (b"",)),
    ],
)
def test_an_invalid_head_is_an_internal_error(headers: list[tuple[bytes, bytes]], parts: tuple[bytes, ...]) -> None:
    assert b"b: c" not in b"".join(_written(_app(headers, *parts)))


@pytest.mark.parametrize("length", [b"4", b"6"])
def test_a_body_of_another_length_than_stated_is_not_completed(length: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        written = b"".join(_written(_app([(b"content-length", length)], b"hello")))
    assert (b"hello" in written) is (length == b"6")
    assert "Exception in ASGI application" in caplog.text


def test_the_loss_of_a_connection_cancels_what_its_client_waits_for() -> None:
    ended: list[object] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        for _ in range(2):  # the second one begins when the connection is lost already
            with pytest.raises(ClientGone) as gone:
                await unless_disconnected(request, asyncio.sleep(60))
            ended.append(gone.value)
        await _app([], b"late")(scope, receive, send)

    assert _written(app, loses_connection=True) == []
    assert len(ended) == 2


@pytest.mark.parametrize("reads_all", [True, False])
def test_a_closed_connection_is_freed_without_a_garbage_collection(*, reads_all: bool) -> None:
    made: list[weakref.ref[JoinedConnection]] = []
    has_begun = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun.set()
        with contextlib.suppress(ClientGone):
            await unless_disconnected(Request(scope, receive, send), asyncio.sleep(0 if reads_all else 60))
        await _app([(b"content-length", b"5")], b"hello")(scope, receive, send)

    async def run() -> None:
        config = uvicorn.Config(app, log_config=None, ws="none", lifespan="off")
        config.load()
        config.loaded_app = app
        state, table = ServerState(), ConnectionTable(10, 1)
        connection_class = limited_connection(ConnectionLimits(1000, 60, 60, 60), Metrics(), table, RequestTurns())

        def connect() -> JoinedConnection:
            connection = connection_class(config, state, {})
            made.append(weakref.ref(connection))
            return connection

        server = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(_GET)
        if reads_all:
            assert (await reader.read(1000)).endswith(b"hello")
        await has_begun.wait()
        tasks = list(state.tasks)
        writer.close()
        await asyncio.gather(writer.wait_closed(), *tasks)
        server.close()
        await server.wait_closed()

    gc.disable()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(run())
            assert [connection() for connection in made] == [None]
    finally:
        gc.enable()
