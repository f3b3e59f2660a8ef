"""Requests of all protocols are admitted before their body is received."""

import asyncio
import json
from collections.abc import Iterator
from typing import cast

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.types import Message, Scope

from bundle.loading import Bundle
from server.http.app import create_app
from server.http.protocols.registry import PROTOCOLS
from server.http.state import ServerState
from server.interface.errors import QueueFull
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

# POST requests that a full server handles: detection, glossaries, memories, documents, which wait for the queue, and
# text of live sessions that were accepted.
ENGINE_FREE = {
    "/detect",
    "/microsoft/detect",
    "/microsoft/breaksentence",
    "/translator/text/v3.0/detect",
    "/translator/text/v3.0/breaksentence",
    "/mtranserver/detect",
    "/language/translate/v2/detect",
    "/language/translate/v2/detect/",
    "/language/translate/v2/languages",
    "/language/translate/v2/languages/",
    "/identifyLang",
    "/apertium/identifyLang",
    "/listPairs",
    "/apertium/listPairs",
    "/suggest",
    "/v2/languages",
    "/v2/usage",
    "/v2/glossaries",
    "/v3/glossaries",
    "/v2/document/{document_id}",
    "/v2/document/{document_id}/result",
    "/v1/documents",
    "/v2/document",
    "/translate_file",
    "/v1/live/{session_id}",
    "/v3/translation_memories",
    "/v3/translation_memories/import",
    "/v3/translation_memories/{memory_id}/export",
}
ROUTERS = [router for protocol in PROTOCOLS.values() for router in protocol.routers]
ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
POSTED = [route.path for route in ROUTES if "POST" in (route.methods or ())]
SHARED = sorted({path for protocol in PROTOCOLS.values() for each in protocol.shared for path in each.paths})
HEADERS = [(b"host", b"localhost"), (b"content-type", b"application/json")]
FULL = QueueFull("full", 1.0)


@pytest.fixture(scope="module")
def full(echo_bundle: Bundle) -> Iterator[FastAPI]:
    """An application whose engine is full, and that has no room for another document."""
    app = create_app(Settings(max_documents=1), [EchoGenerator(echo_bundle, error=FULL)])
    with TestClient(app):
        server: ServerState = app.state.server
        server.begin_upload("another", 1)
        yield app


def _answered_unread(app: FastAPI, path: str, query: bytes = b"", num_bytes: int = 3_000_000) -> list[Message] | None:
    """Return the response to a POST request whose body never comes, or None if the application waits for it."""
    sent: list[Message] = []
    was_read = False
    headers = [*HEADERS, (b"content-length", str(num_bytes).encode())]
    scope: Scope = {"type": "http", "method": "POST", "path": path, "query_string": query, "headers": headers}

    async def receive() -> Message:
        nonlocal was_read
        was_read = was_read or not sent  # after the response, the rest is dropped
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    return None if was_read else sent


def _status(answer: list[Message] | None) -> int | None:
    return None if answer is None else answer[0]["status"]


@pytest.mark.parametrize("path", sorted({*POSTED, *SHARED} - ENGINE_FREE - {"/languages", "/breaksentence"}))
def test_a_full_server_rejects_requests_of_every_protocol_unread(full: FastAPI, path: str) -> None:
    assert _status(_answered_unread(full, path)) == 429


@pytest.mark.parametrize("path", ["/v1/documents", "/v2/document", "/translate_file"])
def test_uploads_beyond_the_limit_are_rejected_unread(full: FastAPI, path: str) -> None:
    assert _status(_answered_unread(full, path)) == 429


@pytest.mark.parametrize("path", ["/detect", "/v2/glossaries", "/v2/document/x/result", "/microsoft/detect"])
def test_requests_without_an_engine_are_read_by_a_full_server(full: FastAPI, path: str) -> None:
    assert _answered_unread(full, path) is None


def test_every_engine_free_path_has_a_route() -> None:
    free = {path for protocol in PROTOCOLS.values() for path in protocol.engine_free_paths if not path.endswith("/")}
    assert free <= {route.path for route in ROUTES}


def test_a_server_with_capacity_reads_the_body(echo: EchoGenerator) -> None:
    with TestClient(create_app(Settings(), [echo])) as client:
        for path in ("/v1/translate", "/v1/score", "/translate"):
            assert _answered_unread(cast(FastAPI, client.app), path) is None


def test_an_error_at_a_shared_path_has_the_fields_of_each_protocol(full: FastAPI) -> None:
    [_, body, *_] = _answered_unread(full, "/translate") or []
    answer = json.loads(body["body"])
    assert answer["error"] == "full"  # LibreTranslate and MTranServer
    assert (answer["code"], answer["message"], answer["data"]) == (429, "full", "")  # DeepLX
    [_, body, *_] = _answered_unread(full, "/v1/translate") or []
    assert json.loads(body["body"])["error"]["code"] == "queue_full"


@pytest.mark.parametrize(("num_bytes", "ends"), [(1000, False), (3_000_000, True)])
def test_a_long_body_that_is_not_read_ends_the_connection(full: FastAPI, num_bytes: int, ends: bool) -> None:
    [start, *_] = _answered_unread(full, "/v1/translate", num_bytes=num_bytes) or []
    assert ((b"connection", b"close") in start["headers"]) == ends


def test_a_rejected_request_is_counted_at_its_route(full: FastAPI) -> None:
    _answered_unread(full, "/v1/score")
    metrics = full.state.server.metrics.exposition().decode()
    assert 'kvasir_requests_total{endpoint="/v1/score",outcome="rejected",status="429"}' in metrics
