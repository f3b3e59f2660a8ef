import io
import time
from collections.abc import Callable

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.middleware.gate import Arrival, Turns
from server.http.protocols.deepl import memories
from server.interface.errors import QueueFull
from server.operations.api_keys.key_file import KeyFile, KeyLimits

TEXT = {"text": "Good morning.", "source": "en", "target": "de"}
PATIENCE_SECONDS = 60
OPEN = {
    "/health",
    "/health/live",
    "/health/ready",
    "/metrics",
    "/languages",
    "/frontend/settings",
    "/download_file/{name}",
    "/version",
    "/__heartbeat__",
    "/__lbheartbeat__",
    "/apertium/listPairs",
    "/microsoft/languages",
    "/translator/text/v3.0/languages",
}

WITH_KEYS_IN_THEIR_ADDRESS = {memories.UPLOAD_PATH, memories.DOWNLOAD_PATH}


@pytest.fixture
def key(keys: KeyFile, app: FastAPI, client: TestClient) -> str:
    _, text = keys.add("team", KeyLimits())
    app.state.server.key_gate.synchronize()
    return text


@pytest.fixture
def added(keys: KeyFile, app: FastAPI, client: TestClient) -> Callable[[KeyLimits], str]:
    """A function that creates a key with these limits, and returns it."""

    def add(limits: KeyLimits) -> str:
        _, text = keys.add("limited", limits)
        app.state.server.key_gate.synchronize()
        return text

    return add


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_every_route_of_a_protocol_needs_a_key(app: FastAPI, client: TestClient) -> None:
    protected = 0
    for path, operations in app.openapi()["paths"].items():
        for method in operations:
            answer = client.request(method.upper(), path)
            if path in WITH_KEYS_IN_THEIR_ADDRESS:
                assert 400 <= answer.status_code < 500, f"{method} {path}: {answer.status_code}"
            elif path in OPEN:
                assert answer.status_code not in (400, 401, 403), f"{method} {path}: {answer.text}"
            else:
                protected += 1
                assert answer.status_code in (400, 401, 403), f"{method} {path}: {answer.status_code}"
                assert "requires an API key" in answer.text, f"{method} {path}: {answer.text}"
    assert protected > 20


@pytest.mark.parametrize(
    ("path", "missing", "invalid"), [("/v1/translate", 401, 401), ("/translate", 400, 403), ("/v2/translate", 403, 403)]
)
def test_each_protocol_has_its_status(client: TestClient, path: str, missing: int, invalid: int) -> None:
    without = client.post(path, json=TEXT)
    wrong = client.post(path, json=TEXT, headers=_bearer("kvasir-00000000-x"))
    assert (without.status_code, wrong.status_code) == (missing, invalid)
    assert ("www-authenticate" in without.headers) == (missing == 401)
    assert "not valid" in wrong.text


def test_a_late_request_is_rejected_before_its_key_is_checked_or_counted(
    client: TestClient, added: Callable[[KeyLimits], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = added(KeyLimits(requests_per_minute=1))

    def late(_: Turns, arrival: Arrival) -> None:
        raise QueueFull("requests arrive faster than the server begins them", 1.0)

    with monkeypatch.context() as changed:
        changed.setattr(Turns, "__call__", late)
        for headers in ({}, _bearer("kvasir-00000000-x"), _bearer(key), _bearer(key)):
            answer = client.post("/v1/translate", json=TEXT, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (429, "queue_full")
    assert client.post("/v1/translate", json=TEXT, headers=_bearer(key)).status_code == 200


def test_a_key_in_the_header_opens_all_protocols(client: TestClient, key: str) -> None:
    assert client.post("/v1/translate", json=TEXT, headers=_bearer(key)).status_code == 200
    libretranslate = {"q": "Good morning.", "source": "en", "target": "de"}
    assert client.post("/translate", json=libretranslate, headers=_bearer(key)).status_code == 200
    deepl = {"Authorization": f"DeepL-Auth-Key {key}"}
    answer = client.post("/v2/translate", json={"text": ["Good morning."], "target_lang": "DE"}, headers=deepl)
    assert answer.status_code == 200
    assert client.get("/v2/usage", headers=deepl).json()["character_count"] == 3 * len("Good morning.")


def test_a_key_as_a_parameter_opens_its_protocol(client: TestClient, key: str) -> None:
    fields = {"q": "Good morning.", "source": "en", "target": "de", "api_key": key}
    assert client.post("/translate", json=fields).status_code == 200
    assert client.post("/translate", data=fields).status_code == 200
    assert client.post("/translate", json=fields | {"api_key": key + "x"}).status_code == 403
    assert client.post("/translate", json=fields | {"api_key": ""}).status_code == 400
    file = {"file": ("a.txt", io.BytesIO(b"Good morning."))}
    sent = client.post("/translate_file", data={"source": "en", "target": "de", "api_key": key}, files=file)
    assert sent.status_code == 200
    assert client.get(sent.json()["translatedFileUrl"]).status_code == 200
    deepl = {"text": "Good morning.", "target_lang": "DE", "auth_key": key}
    assert client.post("/v2/translate", data=deepl).status_code == 200
    assert client.get("/v2/languages", params={"auth_key": key}).status_code == 200
    assert client.post("/v1/translate", json=TEXT, params={"api_key": key}).status_code == 401


def test_a_revoked_key_ends_while_the_server_runs(client: TestClient, keys: KeyFile, key: str) -> None:
    keys.revoke(next(iter(keys.all())))
    give_up = time.monotonic() + PATIENCE_SECONDS
    while client.post("/v1/translate", json=TEXT, headers=_bearer(key)).status_code != 401:
        assert time.monotonic() < give_up


def test_limits_of_a_key(client: TestClient, added: Callable[[KeyLimits], str]) -> None:
    slow, small = added(KeyLimits(requests_per_minute=1)), added(KeyLimits(characters_per_day=20))
    assert client.get("/v1/models", headers=_bearer(slow)).status_code == 200
    rejected = client.get("/v1/models", headers=_bearer(slow))
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (429, "rate_limited")
    assert 1 <= int(rejected.headers["retry-after"]) <= 60
    assert client.post("/v1/translate", json=TEXT, headers=_bearer(small)).status_code == 200
    rejected = client.post("/v1/translate", json=TEXT, headers=_bearer(small))
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (429, "quota_exceeded")
    deepl = {"text": ["Good morning."], "target_lang": "DE"}
    assert client.post("/v2/translate", json=deepl, headers=_bearer(small)).status_code == 456
    assert client.get("/v2/usage", headers=_bearer(small)).json() == {"character_count": 13, "character_limit": 20}


def test_a_failed_request_is_not_charged(client: TestClient, key: str) -> None:
    assert client.post("/v1/translate", json=TEXT | {"target": "fr"}, headers=_bearer(key)).status_code == 422
    assert client.get("/v2/usage", headers=_bearer(key)).json()["character_count"] == 0


def test_a_document_is_charged_and_stops_at_the_limit(client: TestClient, added: Callable[[KeyLimits], str]) -> None:
    key = added(KeyLimits(characters_per_day=20))
    for text, status in ((b"Good morning.", "done"), (b"Good evening.", "error")):
        files = {"file": ("a.txt", io.BytesIO(text))}
        sent = client.post("/v1/documents", data={"source": "en", "target": "de"}, files=files, headers=_bearer(key))
        assert sent.status_code == 202
        end = time.monotonic() + PATIENCE_SECONDS
        job = sent.json()
        while job["status"] not in ("done", "error") and time.monotonic() < end:
            time.sleep(0.005)
            job = client.get(sent.headers["location"], headers=_bearer(key)).json()
        assert job["status"] == status
    assert job["error"]["code"] == "quota_exceeded"


def test_a_key_keeps_as_many_documents_as_it_may(client: TestClient, added: Callable[[KeyLimits], str]) -> None:
    texts = {name: added(KeyLimits(documents=limit)) for name, limit in (("two", 2), ("any", None))}
    stored: dict[str, list[str]] = {name: [] for name in texts}
    for name in ("any", "two", "two", "two", "any"):
        file = {"file": ("a.txt", io.BytesIO(b"Hello."), "text/plain")}
        fields, headers = {"source": "en", "target": "de"}, _bearer(texts[name])
        answer = client.post("/v1/documents", data=fields, files=file, headers=headers)
        assert answer.status_code == 202, answer.text
        stored[name].append(answer.json()["id"])
        give_up = time.monotonic() + PATIENCE_SECONDS
        while client.get(f"/v1/documents/{stored[name][-1]}", headers=headers).json()["status"] != "done":
            assert time.monotonic() < give_up
    found = {
        name: [client.get(f"/v1/documents/{each}", headers=_bearer(texts[name])).status_code for each in ids]
        for name, ids in stored.items()
    }
    assert found == {"any": [200, 200], "two": [404, 200, 200]}


def test_no_key_stands_in_metrics_or_logs(client: TestClient, key: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    client.post("/translate", params={"api_key": key}, json={"q": "a", "source": "en", "target": "de"})
    key_id = key.split("-")[1]
    assert key_id not in client.get("/metrics").text
    records = [str(record.__dict__) for record in caplog.records if record.name.startswith("kvasir")]
    assert any(key_id in record for record in records)
    assert not any(key in record for record in records)


def test_the_settings_of_libretranslate_state_that_keys_are_required(client: TestClient) -> None:
    settings = client.get("/frontend/settings").json()
    assert (settings["apiKeys"], settings["keyRequired"]) == (True, True)
