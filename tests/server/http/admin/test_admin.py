from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.admin.app import create_admin_app
from server.http.app import create_app
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.api_keys.key_gate import KeyGate
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


@pytest.fixture
def app(echo: EchoGenerator) -> FastAPI:
    return create_app(Settings(), [echo])


@pytest.fixture
def admin(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app), TestClient(create_admin_app(app.state.server, None), base_url="http://127.0.0.1") as admin:
        yield admin


def test_the_server_itself_has_no_admin_routes(app: FastAPI) -> None:
    with TestClient(app) as client:
        assert client.get("/admin/models").status_code == 404
        assert client.post("/admin/models", json={"folder": "x"}).status_code == 404


def test_a_folder_that_is_no_bundle_is_refused_with_the_reason(admin: TestClient, tmp_path: Path) -> None:
    answer = admin.post("/admin/models", json={"folder": str(tmp_path)})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == "invalid_request"
    assert "is not a Kvasir bundle" in error["message"]
    assert error["message"].endswith("the models are unchanged")
    assert [model["name"] for model in admin.get("/admin/models").json()["models"]] == ["echo-en-de"]


def test_a_draining_server_changes_no_models(app: FastAPI, admin: TestClient) -> None:
    app.state.server.draining = True
    assert admin.post("/admin/models", json={"folder": "x"}).status_code == 503
    assert admin.post("/admin/models/reload").status_code == 503


@pytest.mark.parametrize(
    ("headers", "advice"),
    [
        ({"Origin": "https://evil.example"}, "use a program instead of a web page"),
        ({"Host": "rebound.example"}, "use localhost or an IP address"),
        ({"Origin": "null"}, "use a program instead of a web page"),
    ],
)
def test_no_web_page_changes_models_by_way_of_a_browser(
    admin: TestClient, headers: dict[str, str], advice: str
) -> None:
    answer = admin.post("/admin/models/reload", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["error"]["message"].endswith(f" is not allowed; {advice}")


def test_with_a_file_of_keys_every_admin_route_needs_one(echo: EchoGenerator, tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "admin.sqlite")
    _, text = file.add("operator", KeyLimits())
    file.close()
    app, gate = create_app(Settings(), [echo]), KeyGate(tmp_path / "admin.sqlite")
    administration = create_admin_app(app.state.server, gate)
    with TestClient(app), TestClient(administration, base_url="http://127.0.0.1") as admin:
        for method, path in (("GET", "/admin/models"), ("POST", "/admin/models/reload"), ("GET", "/metrics")):
            assert admin.request(method, path).status_code == 401, path
            assert admin.request(method, path, headers={"Authorization": "Bearer kvasir-1-2"}).status_code == 401, path
        headers = {"Authorization": f"Bearer {text}"}
        assert admin.get("/admin/models", headers=headers).status_code == 200
        assert admin.get("/health/live").status_code == 200
    gate.close()
