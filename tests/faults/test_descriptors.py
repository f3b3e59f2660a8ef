"""A server that runs out of file descriptors: probes are answered, the log states it, and the server recovers."""

import contextlib
import json
import socket
import time
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started
from tests.faults.raw_requests import CERTIFICATE, PROBE, closing, connect, exchange, post

MAX_DESCRIPTORS = 160
_BODY = json.dumps({"text": "Tea."}).encode()
_TRANSLATION = post("/v1/translate", _BODY, "application/json")
_HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: loc"


@pytest.fixture(scope="module", params=[(), ("--tls-certificate", str(CERTIFICATE))], ids=["plain", "tls"])
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    flags = ("--threads", "1", "--header-timeout-seconds", "60", *request.param)
    yield from started(*flags, max_descriptors=MAX_DESCRIPTORS)


def _idle_connection(served: Served, number: int) -> socket.socket:
    """Open a connection that sends nothing or the beginning of a request."""
    connection = connect(served)
    if number % 2:
        with contextlib.suppress(ConnectionError):
            connection.sendall(_HALF_A_HEAD)
    return connection


def test_connections_without_a_request_make_room_for_others(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(3 * MAX_DESCRIPTORS):
            stack.enter_context(_idle_connection(served, number))
            if number % 40 == 39:
                assert b" 200 " in exchange(served, closing(PROBE))
        assert b" 200 " in exchange(served, _TRANSLATION)
    [line, *_] = [line for line in served.lines if "no file descriptors" in str(line["message"])]
    assert line["level"] == "WARNING"
    assert int(str(line["limit"])) < MAX_DESCRIPTORS


def _begin_translation(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(_TRANSLATION[:-1])


def test_connections_with_requests_leave_room_for_probes(served: Served) -> None:
    models = closing(PROBE.replace(b"/health/live", b"/v1/models"))
    with contextlib.ExitStack() as stack:
        working = [stack.enter_context(connect(served)) for _ in range(MAX_DESCRIPTORS)]
        for connection in working:
            _begin_translation(connection)
        give_up = time.monotonic() + PATIENCE_SECONDS
        while b" 503 " not in exchange(served, models):
            assert time.monotonic() < give_up
            assert b" 200 " in exchange(served, closing(PROBE))
            # The server closed a connection whose request it had not read yet.
            working.append(stack.enter_context(connect(served)))
            _begin_translation(working[-1])
        answers = []
        for connection in working:  # the connections that began first are served
            with contextlib.suppress(OSError):
                connection.sendall(_BODY[-1:])
                answers.append(connection.recv(100))
        assert sum(b" 200 " in answer for answer in answers) > MAX_DESCRIPTORS // 4
    assert b" 200 " in exchange(served, models)
