"""Attacks on a server process: each could take its memory, its event loop, or rows of its engine."""

import contextlib
import json
import time
from collections.abc import Iterator

import pytest

from tests.end_to_end.servers import PATIENCE_SECONDS, Served, started
from tests.faults.raw_requests import connect, exchange, post, read_all, resident_bytes

SOON_SECONDS = 60.0  # a probe answers within milliseconds; the limit ends a hang
_SENTENCE = "I would like to go home now."


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    yield from started(
        *("--threads", "1", "--header-timeout-seconds", "1", "--body-timeout-seconds", "1"),
        *("--write-timeout-seconds", "2", "--max-unread-megabytes", "16"),
    )


def _assert_prompt(served: Served) -> None:
    begun = time.monotonic()
    with served.client() as client:
        assert client.get("/health/live").status_code == 200
    assert time.monotonic() - begun < SOON_SECONDS


@pytest.mark.parametrize("charset", ["punycode", "undefined", "idna", "no-such-codec"])
def test_a_form_cannot_choose_its_codec(served: Served, charset: str) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + b"a" * 240_000 + b"\r\n--b--\r\n"
    with connect(served) as connection:
        connection.sendall(post("/translate", part, f"multipart/form-data; boundary=b; charset={charset}"))
        _assert_prompt(served)
        answer = read_all(connection)
    assert b" 400 " in answer
    assert b"must be UTF-8" in answer


def test_responses_that_are_not_read_are_bounded_and_their_connections_are_aborted(served: Served) -> None:
    fields = {"text": [_SENTENCE] * 1000, "return_attention": True, "num_token_alternatives": 8}
    request = post("/v1/translate", json.dumps(fields).encode(), "application/json")
    before = resident_bytes(served)
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            stack.enter_context(connect(served)).sendall(request)
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not _aborted(served):
            assert time.monotonic() < give_up
            time.sleep(0.1)
        assert resident_bytes(served) - before < 200_000_000


def _aborted(served: Served) -> bool:
    with served.client() as client:
        lines = client.get("/metrics").text.splitlines()
    [line] = [line for line in lines if line.startswith("kvasir_connections_aborted_total ")]
    return float(line.split()[1]) > 0


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"GET /",
        b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
    ],
    ids=["header", "address", "chunk-extension", "trailer"],
)
def test_what_is_not_a_body_is_rejected_before_it_is_gathered(served: Served, begun: bytes) -> None:
    answer = exchange(served, begun + b"a" * 2_000_000)
    # Its end is lost where the server resets a connection with unread bytes.
    assert not answer or b" 431 " in answer
    _assert_prompt(served)


@pytest.mark.parametrize(
    ("begun", "status"),
    [
        (b"", b""),
        (b"GET /health/live HTTP/1.1\r\nHost: loc", b" 408 "),
        (b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nq=", b" 408 "),
    ],
    ids=["nothing", "head", "body"],
)
def test_a_request_that_never_ends_is_closed(served: Served, begun: bytes, status: bytes) -> None:
    answer = exchange(served, begun)
    assert status in answer
    assert bool(status) == bool(answer)


def test_a_malformed_request_has_the_error_format_and_is_counted(served: Served) -> None:
    answer = exchange(served, b"\x16\x03\x01 this is TLS\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["code"] == "invalid_request"
    with served.client() as client:
        metrics = client.get("/metrics").text
    assert 'kvasir_requests_total{endpoint="unknown",outcome="invalid",status="400"}' in metrics


@pytest.mark.parametrize("request_line", [b"GET /health/live", b"GET /health/live HTTP/0.9"])
def test_http_0_9_is_rejected(served: Served, request_line: bytes) -> None:
    assert exchange(served, request_line + b"\r\n\r\n").startswith(b"HTTP/1.1 426 ")


@pytest.mark.parametrize("chunked", [False, True])
def test_an_upgrade_to_http_2_is_ignored_and_the_body_is_read(served: Served, chunked: bool) -> None:
    body = json.dumps({"text": _SENTENCE}).encode()
    headers = ("Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA")
    request = post("/v1/translate", body, "application/json", *headers)
    request = request.replace(b"Connection: close", b"Connection: close, Upgrade, HTTP2-Settings")
    if chunked:
        request = request.replace(b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked")
        request = request.replace(body, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    answer = exchange(served, request)
    assert b" 200 " in answer
    assert b'"translations"' in answer


def test_the_response_to_a_body_that_is_too_large_reaches_a_client_that_sends_all_of_it_first(served: Served) -> None:
    body = b"a" * 6_000_000
    for _ in range(5):
        with connect(served) as connection:
            connection.sendall(post("/v1/translate", body, "application/json"))  # no reset while it sends
            answer = b""
            while chunk := connection.recv(1 << 16):  # nor before the response
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"4000000 bytes" in answer
        assert answer.count(b"HTTP/1.1") == 1


def test_a_client_that_sends_no_more_after_its_last_response_is_disconnected(served: Served) -> None:
    request = post("/v1/translate", b"a" * 6_000_000, "application/json")
    with connect(served) as connection:
        connection.sendall(request[:1000])
        assert read_all(connection).startswith(b"HTTP/1.1 413 ")
