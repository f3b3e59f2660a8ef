"""A server whose event loop gets more requests than it can begin."""

import contextlib
import json
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import Served, started
from tests.faults.raw_requests import PROBE, closing, connect, post, read_all

NUM_CONNECTIONS, NUM_REQUESTS = 100, 40  # the loop begins four requests at once, so that most connections wait
TEXT = {"text": "I would like to go home now.", "source": "en", "target": "de"}
LAST = post("/v1/translate", json.dumps(TEXT).encode(), "application/json")
REQUEST = LAST.replace(b"Connection: close\r\n", b"")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    yield from started("--max-queue-seconds", "0.001", module="tests.faults.echoing_server")


def test_late_requests_are_rejected_while_others_are_answered(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(served)) for _ in range(NUM_CONNECTIONS)]
        for connection in connections:
            connection.sendall(REQUEST * (NUM_REQUESTS - 1) + LAST)
        probe = stack.enter_context(connect(served))
        probe.sendall(closing(PROBE))
        assert read_all(probe).startswith(b"HTTP/1.1 200 ")
        received = b"".join(map(read_all, connections))
    num_answered, num_rejected = received.count(b"HTTP/1.1 200 "), received.count(b"HTTP/1.1 429 ")
    assert num_answered + num_rejected == NUM_CONNECTIONS * NUM_REQUESTS
    assert num_answered
    assert num_rejected
    assert received.count(b"requests arrive faster than the server begins them") == num_rejected
    with served.client() as client:
        answers = [client.post("/v1/translate", json=TEXT) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200] * 3
