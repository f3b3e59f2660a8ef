from pathlib import Path

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

ENGLISH, GERMAN = "Where is the railway station?", "Wo ist der Bahnhof? Er ist 300 Meter von hier."


@pytest.mark.parametrize("prefix", ["", "/mtranserver"])
def test_a_text_and_a_batch_at_both_addresses(compatible: TestClient, prefix: str) -> None:
    one = compatible.post(f"{prefix}/translate", json={"from": "en", "to": "de", "text": ENGLISH})
    assert (one.status_code, one.json()) == (200, {"result": ENGLISH})
    fields = {"from": "auto", "to": "zh-TW", "texts": ["Tea.", "", ENGLISH]}
    several = compatible.post(f"{prefix}/translate/batch", json=fields)
    assert (several.status_code, several.json()) == (200, {"results": ["Tea.", "", ENGLISH]})


def test_a_batch_is_decoded_together(compatible: TestClient, engines: list[EchoGenerator]) -> None:
    engines[0].batches.clear()
    compatible.post("/translate/batch", json={"from": "en", "to": "de", "texts": ["Tea.", "Water."]})
    assert [len(batch) for batch in engines[0].batches] == [2]


def test_html_keeps_its_tags(compatible: TestClient) -> None:
    text = "<p>Tea <b>now</b> &amp; then.</p>"
    answer = compatible.post("/translate", json={"from": "en", "to": "de", "text": text, "html": True})
    assert answer.json() == {"result": text}


def test_a_text_alone_is_detected_in_the_form_of_its_protocol(compatible: TestClient) -> None:
    answer = compatible.post("/detect", json={"text": GERMAN}).json()
    assert answer["language"] == "de"
    assert 0.5 < answer["confidence"] <= 1
    unlikely = compatible.post("/detect", json={"text": GERMAN, "minConfidence": 1.1}).json()
    assert unlikely == {"language": "", "confidence": 0}
    assert isinstance(compatible.post("/detect", json={"q": GERMAN}).json(), list)  # LibreTranslate


def test_addresses_that_describe_the_server(compatible: TestClient) -> None:
    assert compatible.get("/version").json()["version"]
    assert compatible.get("/__heartbeat__").text == compatible.get("/__lbheartbeat__").text == "Ready"
    deepl = compatible.post("/deepl", json={"text": [ENGLISH], "target_lang": "DE"})
    assert deepl.json()["translations"][0]["text"] == ENGLISH


@pytest.mark.parametrize(
    "fields",
    [
        {"from": "en", "to": "jp", "text": "Tea."},
        {"from": "en", "to": "de", "text": ["Tea."]},
        {"from": "en", "to": "de", "text": "Tea.", "html": "maybe"},
    ],
)
def test_invalid_requests_get_an_error(compatible: TestClient, fields: dict[str, object]) -> None:
    answer = compatible.post("/translate", json=fields)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])


def test_the_token_may_have_no_scheme(tmp_path: Path, echo: EchoGenerator) -> None:
    _, key = KeyFile(tmp_path / "keys.sqlite").add("team", KeyLimits())
    fields = {"from": "en", "to": "de", "text": "Tea."}
    with TestClient(create_app(Settings(api_keys=tmp_path / "keys.sqlite"), [echo])) as client:
        for name, value in {"Authorization": key, "authorization": f"Bearer {key}", "X-API-Token": key}.items():
            assert client.post("/translate", json=fields, headers={name: value}).status_code == 200, name
        for name in ("token", "api_token"):
            assert client.post("/translate", json=fields, params={name: key}).status_code == 200, name
        for value in ("", "Bearer", "wrong"):
            rejected = client.post("/translate", json=fields, headers={"Authorization": value})
            assert (rejected.status_code, list(rejected.json())) == (401, ["error"])
        assert client.get("/version").status_code == 200
