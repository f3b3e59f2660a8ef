import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator, EchoStatus


@pytest.fixture
def engines(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en")]


@pytest.fixture
def app(engines: list[EchoGenerator]) -> FastAPI:
    return create_app(Settings(heartbeat_limit_seconds=30), engines)


def _health(client: TestClient) -> tuple[str, str]:
    """Return the states of liveness and readiness; those other than "ok" must have the status 503."""
    answers = [client.get(path) for path in ("/health/live", "/health/ready")]
    states = [str(answer.json()["status"]) for answer in answers]
    assert [answer.status_code for answer in answers] == [200 if state == "ok" else 503 for state in states]
    assert [client.head(path).status_code for path in ("/health/live", "/health/ready")] == [
        answer.status_code for answer in answers
    ]
    return states[0], states[1]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (EchoStatus(), ("ok", "ok")),
        (EchoStatus(heartbeat_age_seconds=30), ("ok", "ok")),
        (EchoStatus(heartbeat_age_seconds=30.1), ("stuck", "stuck")),
        (EchoStatus(draining=True), ("ok", "draining")),
        (EchoStatus(has_engine=False), ("ok", "no_engine")),
    ],
)
def test_one_engine_is_enough_to_fail_a_probe(
    app: FastAPI, engines: list[EchoGenerator], status: EchoStatus, expected: tuple[str, str]
) -> None:
    with TestClient(app) as client:
        engines[1].shown_status = status
        assert _health(client) == expected


def test_a_server_is_live_before_it_is_ready_and_while_it_shuts_down(app: FastAPI) -> None:
    with TestClient(app) as client:
        server = app.state.server
        router, server.router = server.router, None
        assert _health(client) == ("ok", "loading")
        server.router = router
        assert _health(client) == ("ok", "ok")
        server.draining = True
        assert _health(client) == ("ok", "draining")
