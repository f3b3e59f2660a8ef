"""Clients that close their sending half, before an answer or in the middle of one."""

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, gauge, started, until

PROSE = "The old man sat at the window and looked at the rain. " * 60


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    yield from started("--threads", "1", "--write-timeout-seconds", "2")


def _connection(served: Served) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)


def _request(fields: dict[str, object], *, is_whole: bool = True) -> bytes:
    body = json.dumps(fields).encode()
    head = f"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    request = f"{head}Content-Type: application/json\r\n\r\n".encode() + body
    return request if is_whole else request[:-10]


def _rest(connection: socket.socket) -> bytes:
    """Return everything until the server closes the connection; a time-out is an error."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := connection.recv(1 << 16):
            received += chunk
    return received


def _assert_is_idle(served: Served) -> None:
    with served.client() as client:
        until(lambda: gauge(client, "kvasir_requests_running") == 0)
        assert client.post("/v1/translate", json={"text": "Tea."}).status_code == 200


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_client_that_sends_no_more_gets_its_answer_or_the_end(served: Served, is_whole: bool) -> None:
    for _ in range(20):
        with _connection(served) as connection:
            connection.sendall(_request({"text": PROSE}, is_whole=is_whole))
            connection.shutdown(socket.SHUT_WR)
            answer = _rest(connection)
        assert answer == b"" or b"HTTP/1.1 200" in answer or b"HTTP/1.1 400" in answer
    _assert_is_idle(served)


def test_a_client_that_sends_no_more_in_the_middle_of_a_stream_ends_it(served: Served) -> None:
    for _ in range(10):
        with _connection(served) as connection:
            connection.sendall(_request({"text": PROSE, "stream": True}))
            assert b"HTTP/1.1 200" in connection.recv(100)
            connection.shutdown(socket.SHUT_WR)
            _rest(connection)
    _assert_is_idle(served)


def test_a_connection_that_sends_nothing_at_all_is_closed(served: Served) -> None:
    with _connection(served) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert _rest(connection) == b""
    _assert_is_idle(served)
