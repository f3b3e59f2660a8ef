import asyncio
import json
from unittest.mock import Mock

import pytest
import uvicorn
from fastapi import FastAPI
from uvicorn.server import ServerState

from server.http.connection import ConnectionLimits, limited_connection
from server.http.connection_table import ConnectionTable
from server.http.rejections import TOO_MANY_CONNECTIONS, Rejection, as_bytes, rejection_of_head
from server.operations.metrics import Metrics

HOST = (b"host", b"x")


@pytest.mark.parametrize(
    ("version", "headers", "status"),
    [
        ("1.1", [HOST, (b"accept", b"*/*"), (b"user-agent", b"x")], None),
        ("1.0", [], None),
        ("1.0", [HOST], None),
        ("1.1", [HOST, (b"content-encoding", b"Identity")], None),
        ("1.1", [HOST, (b"content-encoding", b"")], None),
        ("1.1", [HOST, (b"accept-encoding", b"gzip")], None),
        ("1.1", [], 400),
        ("1.1", [HOST, HOST], 400),
        ("1.0", [HOST, HOST], 400),
        ("1.1", [HOST, (b"content-encoding", b"gzip")], 415),
        ("0.9", [HOST], 426),
        ("2.0", [HOST], 426),
    ],
)
def test_heads_that_are_rejected(version: str, headers: list[tuple[bytes, bytes]], status: int | None) -> None:
    rejection = rejection_of_head(version, b"/", headers, 1000)
    assert (None if rejection is None else rejection.status) == status


@pytest.mark.parametrize(("num_bytes", "is_rejected"), [(999, False), (1000, True)])
def test_an_address_that_is_too_long_is_named(num_bytes: int, is_rejected: bool) -> None:
    rejection = rejection_of_head("1.1", b"/" * num_bytes, [HOST], 1000)
    message = "address and headers must have at most 1000 bytes; send texts in the body"
    assert rejection == (Rejection(431, "headers_too_large", message) if is_rejected else None)


def test_the_response_has_the_format_of_errors_and_ends_its_connection() -> None:
    head, _, body = as_bytes(TOO_MANY_CONNECTIONS).partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert first == "HTTP/1.1 503 Service Unavailable"
    assert headers == [
        "content-type: application/json",
        f"content-length: {len(body)}",
        "connection: close",
        "retry-after: 1",
    ]
    assert json.loads(body)["error"]["code"] == "too_many_connections"


@pytest.mark.parametrize("for_pages", [False, True])
def test_web_pages_can_read_an_error_below_the_application_if_any_may_call_the_server(for_pages: bool) -> None:
    limits, table = ConnectionLimits(1000, 60, 60, 60), ConnectionTable(10, 1)
    made = limited_connection(limits, Metrics(), table, for_pages)
    config = uvicorn.Config(FastAPI(), log_config=None, ws="none", lifespan="off")
    config.load()
    connection = made(config, ServerState(), {}, Mock(time=lambda: 0.0))
    transport = Mock(spec=asyncio.Transport)
    transport.get_extra_info.return_value = None
    transport.is_closing.return_value = False
    connection.connection_made(transport)
    connection.data_received(b"GET /?q=" + b"a" * 2000)
    (call,) = transport.write.call_args_list
    head = call.args[0].partition(b"\r\n\r\n")[0]
    assert head.startswith(b"HTTP/1.1 431 ")
    assert (b"\r\naccess-control-allow-origin: *" in head) == for_pages
