import json

import pytest

from server.http.rejections import TOO_MANY_CONNECTIONS, as_bytes, rejection_of_head

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
    rejection = rejection_of_head(version, headers)
    assert (None if rejection is None else rejection.status) == status


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
