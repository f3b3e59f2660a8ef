"""Clients that close their sending half, before an answer or in the middle of one."""

import json
import socket
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import Served, gauge, started, until
from tests.faults.raw_requests import connect, post, read_all

PROSE = "The old man sat at the window and looked at the rain. " * 60


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    yield from started("--threads", "1", "--write-timeout-seconds", "2")


def _request(fields: dict[str, object]) -> bytes:
    return post("/v1/translate", json.dumps(fields).encode(), "application/json").replace(b"Connection: close\r\n", b"")


def _assert_is_idle(served: Served) -> None:
    with served.client() as client:
        until(lambda: gauge(client, "kvasir_requests_running") == 0)
        assert client.post("/v1/translate", json={"text": "Tea."}).status_code == 200


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_client_that_sends_no_more_gets_its_answer_or_the_end(served: Served, is_whole: bool) -> None:
    for _ in range(20):
        with connect(served) as connection:
            request = _request({"text": PROSE})
            connection.sendall(request if is_whole else request[:-10])
            connection.shutdown(socket.SHUT_WR)
            answer = read_all(connection)
        assert answer == b"" or b"HTTP/1.1 200" in answer or b"HTTP/1.1 400" in answer
    _assert_is_idle(served)


def test_a_client_that_sends_no_more_in_the_middle_of_a_stream_ends_it(served: Served) -> None:
    for _ in range(10):
        with connect(served) as connection:
            connection.sendall(_request({"text": PROSE, "stream": True}))
            assert b"HTTP/1.1 200" in connection.recv(100)
            connection.shutdown(socket.SHUT_WR)
            read_all(connection)
    _assert_is_idle(served)


def test_a_connection_that_sends_nothing_at_all_is_closed(served: Served) -> None:
    with connect(served) as connection:
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b""
    _assert_is_idle(served)
