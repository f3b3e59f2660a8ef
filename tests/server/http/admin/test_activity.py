"""Counts by model and key, and models that are loaded on demand."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.admin.app import create_admin_app
from server.http.app import create_app
from server.operations.settings import Settings
from server.workers.on_demand_engine import OnDemandEngine
from tests.fakes.echo import EchoFor, EchoGenerator, EchoStatus


@pytest.fixture
def loaded(echo_for: EchoFor) -> EchoGenerator:
    engine = echo_for("en", "de")
    engine.shown_status = EchoStatus(waiting=2, running=3, rows_in_use=4, rows=64)
    return engine


@pytest.fixture
def app(loaded: EchoGenerator, echo_for: EchoFor) -> FastAPI:
    other = echo_for("de", "en")
    on_demand = [
        OnDemandEngine(loaded.bundle, lambda: loaded, 10, loaded),
        OnDemandEngine(other.bundle, lambda: other, 20),
    ]
    return create_app(Settings(), on_demand)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


@pytest.fixture
def admin(app: FastAPI, client: TestClient) -> Iterator[TestClient]:
    with TestClient(create_admin_app(app.state.server, None), base_url="http://127.0.0.1") as admin:
        yield admin


def test_requests_are_counted_by_model(client: TestClient, admin: TestClient) -> None:
    body = {"text": ["Good morning.", "Tea."], "source": "en", "target": "de"}
    assert client.post("/v1/translate", json=body).status_code == 200
    assert client.post("/v1/translate", json=body | {"text": "x" * 200_000}).status_code >= 400
    found = admin.get("/admin/activity").json()
    assert (found["requests_in_flight"], found["draining"], found["keys"]) == (0, False, {})
    assert found["uptime_seconds"] >= 0
    [(name, counts)] = found["models"].items()
    assert (name, counts["name"], counts["requests"], counts["rejected"]) == ("echo-en-de", "echo-en-de", 1, 0)
    assert counts["characters"] == 17
    assert counts["source_tokens"] == counts["target_tokens"] > 2


def _states(admin: TestClient) -> list[dict[str, object]]:
    return list(admin.get("/admin/models").json()["models"])


def test_models_show_their_load_and_their_memory(admin: TestClient) -> None:
    first, second = _states(admin)
    numbers = ("is_loaded", "memory_bytes", "waiting", "running", "rows_in_use", "rows")
    assert [first[name] for name in numbers] == [True, 10, 2, 3, 4, 64]
    assert [second[name] for name in numbers] == [False, 0, 0, 0, 0, 0]
    assert isinstance(first["idle_seconds"], float)
    assert 0 <= first["idle_seconds"] < 1000
    assert (first["source_languages"], first["target_languages"]) == (["en"], ["de"])


def test_an_idle_model_is_unloaded_and_loaded_again_by_a_request(client: TestClient, admin: TestClient) -> None:
    assert admin.post("/admin/models/echo-en-de/unload").json() == {"unloaded": True}
    assert [state["is_loaded"] for state in _states(admin)] == [False, False]
    assert client.post("/v1/translate", json={"text": "Tea.", "source": "en", "target": "de"}).status_code == 200
    assert [state["is_loaded"] for state in _states(admin)] == [True, False]
    assert admin.post("/admin/models/other/unload").status_code == 404


def test_a_model_is_removed_but_not_the_last(admin: TestClient) -> None:
    answer = admin.delete("/admin/models/echo-de-en")
    assert (answer.status_code, answer.json()["model"], answer.json()["outcome"]) == (200, "echo-de-en", "removed")
    assert set(answer.json()["seconds"]) == {"drain"}
    assert admin.delete("/admin/models/echo-en-de").status_code == 422
    assert [state["name"] for state in _states(admin)] == ["echo-en-de"]
