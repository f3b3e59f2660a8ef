from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from server.http.app import create_app
from server.interface.errors import QueueFull
from server.operations.settings import Settings
from tests.fakes.cached_echo import Cached, ask, run
from tests.fakes.echo import EchoFor, EchoGenerator

FULL = QueueFull("full", 1.0)


@pytest.fixture
def echoes(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en")]


@pytest.fixture
def client(echoes: list[EchoGenerator]) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), echoes)) as client:
        yield client


@pytest.mark.parametrize("path", ["/v1/translate", "/translate", "/v2/translate"])
def test_a_request_to_a_full_server_is_refused_unread(
    client: TestClient, echoes: list[EchoGenerator], path: str
) -> None:
    def post() -> int:
        return client.post(path, content="{}", headers={"Content-Type": "application/json"}).status_code

    assert post() in (400, 422)
    echoes[0].error = FULL
    assert post() in (400, 422), "the other model has room"
    echoes[1].error = FULL
    assert post() == 429
    echoes[1].error = None
    assert post() in (400, 422)


def test_what_is_not_translated_is_answered_by_a_full_server(client: TestClient, echoes: list[EchoGenerator]) -> None:
    for echo in echoes:
        echo.error = FULL
    for path in ("/v1/models", "/languages", "/v2/usage", "/health/ready"):
        assert client.get(path).status_code == 200
    assert client.post("/detect", json={"q": "Good morning"}).status_code == 200


def _num_refused(cached: Cached, calls: int) -> int:
    refused = 0
    for _ in range(calls):
        try:
            cached.generator.check_admission()
        except QueueFull:
            refused += 1
    return refused


def test_without_a_cache_requests_to_a_full_engine_are_rejected(echo: EchoGenerator) -> None:
    cached = Cached(echo, max_sentences=0)
    assert _num_refused(cached, 64) == 0
    echo.error = FULL
    assert _num_refused(cached, 64) == 64


def test_a_cache_that_has_found_nothing_lately_is_asked_by_a_sample_only(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def ask_for_different_sentences() -> None:
        for token in range(1, 10):
            await cached.generator.generate([ask(token)])

    run(ask_for_different_sentences)
    echo.error = FULL
    assert _num_refused(cached, 64) == 60


def test_a_cache_that_finds_sentences_is_asked_by_everybody(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def ask_for_the_same_sentence() -> None:
        for _ in range(9):
            await cached.generator.generate([ask(5)])

    run(ask_for_the_same_sentence)
    echo.error = FULL
    assert _num_refused(cached, 64) == 0
