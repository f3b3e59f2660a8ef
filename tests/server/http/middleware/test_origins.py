from pathlib import Path

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


@pytest.mark.parametrize(
    ("setting", "origin"),
    [
        ("*", "https://page.example"),
        ("*", "moz-extension://8bd2ee3c-8e1c-4d5b-9c2d-8a54cf1f5e5b"),
        ("moz-extension://*", "moz-extension://8bd2ee3c-8e1c-4d5b-9c2d-8a54cf1f5e5b"),
        ("chrome-extension://*", "chrome-extension://amkbmndfnliijdhojkpoglbnaaahippg"),
        ("https://*.example", "https://page.example"),
    ],
)
def test_a_pattern_allows_origins_and_the_headers_that_they_ask_for(
    echo: EchoGenerator, tmp_path: Path, setting: str, origin: str
) -> None:
    asked = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,ocp-apim-subscription-key,x-stainless-lang",
    }
    settings = Settings(cors_origins=[setting], api_keys=tmp_path / "keys.sqlite")
    with TestClient(create_app(settings, [echo])) as client:
        preflight = client.options("/translate", headers=asked)  # without a key
        assert preflight.status_code == 200, preflight.text
        assert preflight.headers["access-control-allow-origin"] in ("*", origin)
        assert preflight.headers["access-control-allow-headers"] == asked["Access-Control-Request-Headers"]
        rejected = client.post("/translate", json={}, headers={"Origin": origin})
        assert rejected.status_code == 400
        assert rejected.headers["access-control-allow-origin"] in ("*", origin)


@pytest.mark.parametrize("setting", ["moz-extension://*", "https://*.example"])
@pytest.mark.parametrize("origin", ["https://page.example.attacker.org", "http://page.example", "null", "https://x/y"])
def test_a_pattern_allows_no_other_origin(echo: EchoGenerator, setting: str, origin: str) -> None:
    with TestClient(create_app(Settings(cors_origins=[setting]), [echo])) as client:
        assert client.post("/translate", json={}, headers={"Origin": origin}).status_code == 403
        assert "access-control-allow-origin" not in client.get("/languages", headers={"Origin": origin}).headers
