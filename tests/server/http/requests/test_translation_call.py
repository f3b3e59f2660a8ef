import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/score"])
def test_details_beyond_the_memory_for_responses_are_rejected(echo: EchoGenerator, path: str) -> None:
    app: FastAPI = create_app(Settings(max_unread_megabytes=1), [echo])
    body = {"text": "Tea.", "translation": "Tee.", "return_attention": True}
    if path == "/v1/translate":
        del body["translation"]
    with TestClient(app) as client:
        server = app.state.server
        assert client.post(path, json=body).status_code != 429
        assert server.expected.total == 0, "nothing is held behind the response"
        server.expected.add("testclient", 250_000)
        rejected = client.post(path, json=body)
        assert (rejected.status_code, rejected.json()["error"]["code"]) == (429, "queue_full")
        assert server.expected.total == 250_000
        assert client.post(path, json=body | {"return_attention": False}).status_code != 429
