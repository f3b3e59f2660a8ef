import pytest
from starlette.exceptions import HTTPException

from server.http.middleware.gate import Arrival, check_head
from tests.fakes.event_loop import in_event_loop

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
@in_event_loop
async def test_heads_that_are_rejected(version: str, headers: list[tuple[bytes, bytes]], status: int | None) -> None:
    async def receive() -> dict[str, object]:
        raise AssertionError("a head is checked before the body is received")

    arrival = Arrival({"http_version": version, "headers": headers}, receive, ("/",))
    if status is None:
        check_head(arrival)
        return
    with pytest.raises(HTTPException) as raised:
        check_head(arrival)
    assert raised.value.status_code == status
    assert (raised.value.headers or {})["Connection"] == "close"
