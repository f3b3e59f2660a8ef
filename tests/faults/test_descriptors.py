"""A server that runs out of file descriptors: probes are answered, the log states it, and the server recovers."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started

MAX_DESCRIPTORS = 160


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    yield from started("--threads", "1", "--header-timeout-seconds", "60", max_descriptors=MAX_DESCRIPTORS)


def _connection(served: Served) -> socket.socket:
    host, port = served.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS)


def _status(served: Served, path: str = "/health/live") -> int:
    with _connection(served) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return int(connection.recv(1000).split()[1])


def test_connections_without_a_request_make_room_for_others(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(3 * MAX_DESCRIPTORS):
            idle = stack.enter_context(_connection(served))
            if number % 2:
                with contextlib.suppress(ConnectionError):
                    idle.sendall(b"GET / HTTP/1.1\r\nHost: loc")
            if number % 40 == 39:
                assert _status(served) == 200
        with served.client() as client:
            answer = client.post("/v1/translate", json={"text": "Good morning."})
            assert answer.status_code == 200
    [line, *_] = [line for line in served.lines if "no file descriptors" in str(line["message"])]
    assert line["level"] == "WARNING"
    assert int(str(line["limit"])) < MAX_DESCRIPTORS


def test_connections_with_requests_leave_room_for_probes(served: Served) -> None:
    body = json.dumps({"text": "Tea."}).encode()
    head = "POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    begun = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-1]
    with contextlib.ExitStack() as stack:
        working = [stack.enter_context(_connection(served)) for _ in range(MAX_DESCRIPTORS)]
        for connection in working:
            with contextlib.suppress(ConnectionError):
                connection.sendall(begun)
        give_up = time.monotonic() + PATIENCE_SECONDS
        statuses = []
        while 503 not in statuses:
            assert time.monotonic() < give_up
            assert _status(served) == 200
            statuses.append(_status(served, "/v1/models"))
        answers = []
        for connection in working:  # the connections that began first are served
            with contextlib.suppress(ConnectionError):
                connection.sendall(body[-1:])
                answers.append(connection.recv(100))
        assert sum(b" 200 " in answer for answer in answers) > MAX_DESCRIPTORS // 4
    assert _status(served, "/v1/models") == 200
