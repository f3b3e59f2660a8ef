"""Connections and headers as no browser sends them: none may take memory, or be answered with a 500."""

import contextlib
import gzip
import json
import select
import socket
from collections.abc import Iterator

import httpx2
import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, gauge, num_cancelled, started, until
from tests.faults.raw_requests import PROBE, closing, connect, exchange, post, read_all, resident_bytes

_BODY = json.dumps({"text": "Good morning."}).encode()
_HEADERS = (
    *("Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Content-Encoding", "Content-Language"),
    *("Content-Type", "Cookie", "Expect", "Forwarded", "Host", "If-Modified-Since", "If-None-Match", "Origin"),
    *("Range", "Referer", "Sec-Fetch-Site", "TE", "traceparent", "tracestate", "Upgrade", "X-API-Token"),
    *("X-ClientTraceId", "X-Forwarded-For", "X-Forwarded-Proto", "X-Goog-Api-Key", "X-Request-ID"),
)
_VALUES = (
    *("", "http://[", "http://[::1", "http://a:b:c", "moz-extension://[", "null", "//", "[", "]x", ":", "%00", "\xff"),
    *("1e308", "q=nan", "*;q=-1", ";;=", 'W/"', "bytes=-1", "Thu, 99 Zzz 9999", "ff-00-00-00", "localhost:x"),
    *(
        "application/json; charset=punycode",
        'multipart/form-data; boundary=""',
        "multipart/form-data; boundary*=a''%ff",
    ),
    "multipart/form-data; boundary=" + "b" * 1000,
)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    # A slow machine takes longer for a burst than requests may wait.
    yield from started("--threads", "1", "--max-queue-seconds", "60", "--max-documents", "2")


def test_requests_that_are_sent_faster_than_their_responses_are_read_take_no_memory(served: Served) -> None:
    before, requests = resident_bytes(served), PROBE * 1000
    num_sent = 0
    with connect(served) as connection:
        connection.setblocking(False)
        while num_sent < 50_000_000 and select.select([], [connection], [], 2)[1]:
            with contextlib.suppress(BlockingIOError):
                num_sent += connection.send(requests)
        assert num_sent < 50_000_000
        assert resident_bytes(served) - before < 50_000_000


def test_a_probe_is_answered_before_requests_of_many_connections(served: Served) -> None:
    num_connections, num_requests = 40, 100
    request = post("/v1/translate", _BODY, "application/json").replace(b"Connection: close\r\n", b"")
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(connect(served)) for _ in range(num_connections)]
        for connection in connections:
            connection.sendall(request * num_requests)
        assert exchange(served, closing(PROBE)).startswith(b"HTTP/1.1 200 ")
        numbers = [_num_received(connection) for connection in connections]
        assert sum(numbers) < num_connections * num_requests / 4
        for connection, number in zip(connections, numbers, strict=True):
            while number < num_requests:
                received = connection.recv(1 << 20)
                assert received
                number += received.count(b"HTTP/1.1 200 ")


def _num_received(connection: socket.socket) -> int:
    """Return how many responses have been received already."""
    if not select.select([connection], [], [], 0)[0]:
        return 0
    return connection.recv(1 << 20).count(b"HTTP/1.1 200 ")


def test_requests_sent_at_once_are_answered_in_their_order(served: Served) -> None:
    request = post("/v1/translate", _BODY, "application/json").replace(b"Connection: close\r\n", b"")
    last = PROBE.replace(b"live", b"ready").replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    answer = exchange(served, (PROBE * 50 + request) * 20 + last)
    assert answer.count(b"HTTP/1.1 200 ") == 51 * 20 + 1
    kinds = [b"translations" in each for each in answer.split(b"HTTP/1.1 200 ")[1:]]
    assert kinds == ([False] * 50 + [True]) * 20 + [False]


def test_no_value_of_a_header_is_an_error_of_the_server(served: Served) -> None:
    statuses: dict[int, int] = {}
    for name in _HEADERS:
        for value in _VALUES:
            request = post("/v1/translate", _BODY, "application/json")
            lines = [line for line in request.split(b"\r\n") if not line.lower().startswith(name.lower().encode())]
            lines.insert(1, f"{name}: {value}".encode("latin-1"))
            answer = exchange(served, b"\r\n".join(lines))
            status = int(answer.split(maxsplit=2)[1])
            statuses[status] = statuses.get(status, 0) + 1
            assert status < 500, (name, value)
    assert statuses[200] > len(_HEADERS)


def test_a_compressed_request_is_rejected(served: Served) -> None:
    request = post("/v1/translate", gzip.compress(_BODY), "application/json")
    answer = exchange(served, request.replace(b"\r\n", b"\r\nContent-Encoding: gzip\r\n", 1))
    assert answer.startswith(b"HTTP/1.1 415 ")
    assert b"accept-encoding: identity\r\n" in answer
    assert b"must not be compressed. Given: `Content-Encoding: gzip`" in answer
    request = post("/v1/translate", _BODY, "application/json")
    answer = exchange(served, request.replace(b"\r\n", b"\r\nContent-Encoding: identity\r\n", 1))
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_stream_over_http_1_0_has_no_chunks(served: Served) -> None:
    body = json.dumps({"text": "Good morning.", "stream": True}).encode()
    head, _, events = exchange(
        served, post("/v1/translate", body, "application/json").replace(b"HTTP/1.1", b"HTTP/1.0")
    ).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head.lower()
    assert events.startswith(b"event: text\ndata: {")


# Different sentences, so that no response is complete at once.
_LONG, _STREAM = (
    json.dumps(
        {"text": " ".join(f"{kind} {n} is old, and we like it." for n in range(600)), "stream": kind == "Tree"}
    ).encode()
    for kind in ("House", "Tree")
)
_FORM = b'--b\r\nContent-Disposition: form-data; name="text"\r\n\r\na house'


@pytest.mark.parametrize(
    "request_bytes",
    [
        *(post(path, _BODY, "application/json")[:-1] for path in ("/translate", "/v1/translate", "/v2/glossaries")),
        *(post(path, _FORM, "multipart/form-data; boundary=b")[:-1] for path in ("/v2/translate", "/v1/documents")),
        *(post("/v1/translate", body, "application/json") + PROBE for body in (_LONG, _STREAM)),
    ],
    ids=["form-or-json", "json", "fields", "form", "file", "request-behind", "request-behind-stream"],
)
def test_a_client_that_leaves_is_no_error_of_the_server(served: Served, request_bytes: bytes) -> None:
    request_bytes = request_bytes.replace(b"Connection: close\r\n", b"")
    with served.client() as client:
        before = num_cancelled(client)
        with connect(served) as connection:
            connection.sendall(request_bytes)
            if _STREAM in request_bytes:
                assert connection.recv(100)  # it leaves during the response
            assert client.get("/health/live").status_code == 200  # what came before was read
        until(lambda: num_cancelled(client) > before)
        assert 'status="5' not in client.get("/metrics").text
    assert not [line for line in served.lines if line["level"] == "ERROR"]


def test_a_client_that_leaves_unread_requests_behind_takes_no_more_rows(served: Served) -> None:
    text = " ".join(f"Client {n} has an old house, and we like it." for n in range(1000))
    request = post("/v1/translate", json.dumps({"text": text}).encode(), "application/json")
    with served.client() as client:
        before, decoded = num_cancelled(client), _num_decoded(client)
        with connect(served) as connection:
            connection.settimeout(1)
            with contextlib.suppress(TimeoutError):
                connection.sendall(request.replace(b"Connection: close\r\n", b"") + PROBE * 20_000)
            until(lambda: gauge(client, "kvasir_requests_running") > 0)
        until(lambda: num_cancelled(client) > before)
        assert _num_decoded(client) - decoded < 1000


def _num_decoded(client: httpx2.Client) -> float:
    """Return how many sentences were decoded so far."""
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("kvasir_sentences_total{"))


def test_a_damaged_request_behind_another_takes_no_part_of_its_response(served: Served) -> None:
    request = post("/v1/translate", _LONG, "application/json").replace(b"Connection: close\r\n", b"")
    damaged = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n"
    answer = exchange(served, request + damaged)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["translations"]


def test_uploads_are_rejected_before_their_body_is_read(served: Served) -> None:
    head = "POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
    begun = (head + "Content-Length: 1000000\r\n\r\n--b\r\n").encode()
    with connect(served) as one, connect(served) as two, connect(served) as three:
        connections = [one, two, three]
        for connection in connections:
            connection.sendall(begun)
        [rejected], _, _ = select.select(connections, [], [], PATIENCE_SECONDS)
        assert b" 429 " in rejected.recv(1000)


PROSE = "The old man sat at the window and looked at the rain. " * 60


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
