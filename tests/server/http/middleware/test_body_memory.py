import asyncio
from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from server.http.app import create_app
from server.http.middleware.body import BodyLimits
from server.http.state import RequestRecord, ServerState
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


@pytest.fixture
def server() -> ServerState:
    return ServerState(Settings(max_unread_megabytes=1), Metrics())


def _read(server: ServerState, parts: Sequence[bytes], path: str = "/v1/translate", client: str = "a") -> list[int]:
    """Return the bytes that are counted after each part of a body."""
    counted: list[int] = []
    pending = iter([{"type": "http.request", "body": part, "more_body": True} for part in parts])
    scope: Scope = {
        "type": "http",
        "path": path,
        "headers": [],
        "state": {"record": RequestRecord("id", client=client)},
    }

    async def receive() -> Message:
        return next(pending)

    async def send(_: Message) -> None:
        raise AssertionError("the middleware sends nothing")

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        for _part in parts:
            await receive()
            counted.append(server.body_memory.total)

    asyncio.run(BodyLimits(app, 10_000, {"/v1/documents": 10_000}, memory=server.body_memory)(scope, receive, send))
    return counted


def test_a_body_is_counted_until_its_request_ends(server: ServerState) -> None:
    assert _read(server, [b"a" * 1000, b"", b"b" * 500]) == [1000, 1000, 1500]
    assert server.body_memory.total == 0


def test_bodies_beyond_the_share_of_a_client_are_rejected(server: ServerState) -> None:
    server.body_memory.add("a", 249_000)
    with pytest.raises(HTTPException) as rejected:
        _read(server, [b"a" * 1000, b"a"])
    assert rejected.value.status_code == 429
    assert int((rejected.value.headers or {})["Retry-After"]) >= 1
    assert server.body_memory.total == 249_000
    assert _read(server, [b"a" * 2000], client="b") == [251_000]


def test_uploads_are_counted_with_the_documents(server: ServerState) -> None:
    assert _read(server, [b"a" * 1000], path="/v1/documents") == [0]


@pytest.mark.parametrize("path", ["/v1/translate", "/translate", "/v2/translate"])
def test_a_server_without_memory_for_bodies_answers_429(echo: EchoGenerator, path: str) -> None:
    app = create_app(Settings(max_unread_megabytes=1), [echo])
    with TestClient(app) as client:
        app.state.server.body_memory.add("testclient", 999_000)
        answer = client.post(path, json={"text": "Tea. " * 400, "q": "Tea."})
        assert answer.status_code == 429
        assert "bodies of requests of this client" in answer.text
        assert app.state.server.body_memory.total == 999_000
