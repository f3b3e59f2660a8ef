"""Glossaries of strangers: their memory is bounded, and nothing else waits while they are prepared."""

import threading
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.http.state import ServerState
from server.operations.settings import Settings
from server.translation.execution import GLOSSARIES
from tests.fakes.echo import EchoFor

BODY = {"text": "Tea.", "source": "en", "target": "de"}


@pytest.fixture
def client(echo_for: EchoFor) -> Iterator[TestClient]:
    settings = Settings(max_glossary_megabytes=1, request_timeout_seconds=2.0)
    with TestClient(create_app(settings, [echo_for("en", "de")])) as client:
        yield client


def _state(client: TestClient) -> ServerState:
    state = client.app.state.server  # type: ignore[attr-defined]
    assert isinstance(state, ServerState)
    return state


def test_glossaries_of_running_requests_share_a_limit(client: TestClient) -> None:
    memory = _state(client).glossary_memory
    memory.add("testclient", 200_000)
    answer = client.post("/v1/translate", json=BODY | {"glossary": {f"a{n}": "b" * 150 for n in range(200)}})
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert "glossaries in requests of this client" in answer.json()["error"]["message"]
    memory.remove("testclient", 200_000)
    for entries in ({"tea": "Tee"}, {"": "b"}):  # translated, and rejected
        client.post("/v1/translate", json=BODY | {"glossary": entries})
        assert memory.total == 0


def test_a_glossary_that_is_prepared_delays_no_other_request(client: TestClient) -> None:
    may_go_on = threading.Event()
    busy = GLOSSARIES.submit(may_go_on.wait)
    try:
        for fields in ({"text": "Tea."}, {"text": "Good morning. " * 300}, {"text": "Good {name}. " * 300}):
            assert client.post("/v1/translate", json=BODY | fields).status_code == 200
        assert client.get("/v2/glossaries").status_code == 200
        late = client.post("/v1/translate", json=BODY | {"glossary": {"tea": "Tee"}, "timeout_seconds": 0.1})
        assert late.status_code == 504
    finally:
        may_go_on.set()
        busy.result()
