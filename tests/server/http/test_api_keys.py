"""API keys in every protocol: where they are sent, their limits, errors, and the characters counted."""

import io
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.app import create_app
from server.http.protocols.deepl import memories
from server.http.protocols.registry import PROTOCOLS
from server.interface.errors import EngineFailed, QueueFull
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator

BODY = {"text": "Good morning.", "source": "en", "target": "de"}
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
    assert client.post("/v1/translate", json=BODY, params={"api_key": key}).status_code == 401


def test_a_revoked_key_ends_while_the_server_runs(client: TestClient, keys: KeyFile, key: str) -> None:
    keys.revoke(next(iter(keys.all())))
    give_up = time.monotonic() + PATIENCE_SECONDS
    while client.post("/v1/translate", json=BODY, headers=_bearer(key)).status_code != 401:
        assert time.monotonic() < give_up


def test_limits_of_a_key(client: TestClient, added: Callable[[KeyLimits], str]) -> None:
    slow, small = added(KeyLimits(requests_per_minute=1)), added(KeyLimits(characters_per_day=20))
    assert client.get("/v1/models", headers=_bearer(slow)).status_code == 200
    rejected = client.get("/v1/models", headers=_bearer(slow))
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (429, "rate_limited")
    assert 1 <= int(rejected.headers["retry-after"]) <= 60
    assert client.post("/v1/translate", json=BODY, headers=_bearer(small)).status_code == 200
    rejected = client.post("/v1/translate", json=BODY, headers=_bearer(small))
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (429, "quota_exceeded")
    deepl = {"text": ["Good morning."], "target_lang": "DE"}
    assert client.post("/v2/translate", json=deepl, headers=_bearer(small)).status_code == 456
    assert client.get("/v2/usage", headers=_bearer(small)).json() == {"character_count": 13, "character_limit": 20}


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


TEXT = "Good morning."
MESSAGE = "<message>"


@dataclass(frozen=True)
class Call:
    """A translation of `TEXT` in one protocol."""

    path: str
    json: object = None
    data: Mapping[str, str] | None = None
    method: str = "POST"
    query: Mapping[str, str] = field(default_factory=dict)
    bypasses_cache: bool = False

    def send(self, client: TestClient, key: str | None) -> tuple[int, object, dict[str, str]]:
        """Return the status, the body with its messages replaced, and the headers about errors."""
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        if self.bypasses_cache:
            headers["Cache-Control"] = "no-cache"
        answer = client.request(
            self.method, self.path, params=dict(self.query), json=self.json, data=self.data, headers=headers
        )
        kept = {name: answer.headers[name] for name in ("www-authenticate", "retry-after") if name in answer.headers}
        body = None if answer.status_code == 200 else _without_messages(answer.json())
        return answer.status_code, body, kept


_PAIR = {"source": "en", "target": "de"}
CALLS = {
    "native": Call("/v1/translate", _PAIR | {"text": TEXT}),
    "libretranslate": Call("/translate", _PAIR | {"q": TEXT}),
    "deepl": Call("/v2/translate", {"text": [TEXT], "source_lang": "EN", "target_lang": "DE"}),
    "deeplx": Call("/deeplx/translate", {"text": TEXT, "source_lang": "EN", "target_lang": "DE"}),
    "extensions": Call("/imme", {"text_list": [TEXT], "source_lang": "en", "target_lang": "de"}),
    "mtranserver": Call("/mtranserver/translate", {"text": TEXT, "from": "en", "to": "de"}),
    "openai": Call("/v1/chat/completions", {"model": "echo-en-de", "messages": [{"role": "user", "content": TEXT}]}),
    "google": Call("/language/translate/v2", _PAIR | {"q": TEXT, "format": "text"}),
    "apertium": Call("/apertium/translate", data={"langpair": "en|de", "q": TEXT}),
    "games": Call("/xunity/translate", method="GET", query={"from": "en", "to": "de", "text": TEXT}),
    "microsoft": Call("/microsoft/translate", [{"Text": TEXT}], query={"api-version": "3.0", "from": "en", "to": "de"}),
}


def _without_messages(body: object) -> object:
    if isinstance(body, list):
        return [_without_messages(each) for each in body]
    if not isinstance(body, dict):
        return MESSAGE if isinstance(body, str) and " " in body else body
    return {name: _without_messages(value) for name, value in body.items()}


def _google(code: int, status: str, reason: str) -> dict[str, object]:
    causes = [{"message": MESSAGE, "domain": "global", "reason": reason}]
    return {"error": {"code": code, "message": MESSAGE, "errors": causes, "status": status}}


def _apertium(code: int, phrase: str) -> dict[str, object]:
    texts = {"message": phrase, "explanation": MESSAGE, "responseDetails": MESSAGE}
    return {"status": "error", "code": code, "responseData": None, "responseStatus": code} | texts


def _openai(kind: str, code: str) -> dict[str, object]:
    return {"error": {"message": MESSAGE, "type": kind, "param": None, "code": code}}


def _native(code: str) -> dict[str, object]:
    return {"error": {"code": code, "message": MESSAGE}}


_NO_KEY, _RATE, _QUOTA = "missing_api_key", "rate_limited", "quota_exceeded"
_PLAIN = {"error": MESSAGE}
_UNAUTHORIZED = (401, _PLAIN)
_LATER = (429, _PLAIN)
# Without a key, with a wrong one, too many requests in a minute, too many characters in a day.
EXPECTED: Mapping[str, Sequence[tuple[int, object]]] = {
    "native": [
        (401, _native(_NO_KEY)),
        (401, _native("invalid_api_key")),
        (429, _native(_RATE)),
        (429, _native(_QUOTA)),
    ],
    "libretranslate": [(400, _PLAIN), (403, _PLAIN), _LATER, _LATER],
    "deepl": [(status, {"message": MESSAGE}) for status in (403, 403, 429, 456)],
    "deeplx": [(status, {"code": status, "message": MESSAGE, "data": ""}) for status in (401, 401, 429, 429)],
    "extensions": [_UNAUTHORIZED, _UNAUTHORIZED, _LATER, _LATER],
    "mtranserver": [_UNAUTHORIZED, _UNAUTHORIZED, _LATER, _LATER],
    "openai": [
        (401, _openai("authentication_error", _NO_KEY)),
        (401, _openai("authentication_error", "invalid_api_key")),
        (429, _openai("rate_limit_error", _RATE)),
        (429, _openai("rate_limit_error", _QUOTA)),
    ],
    "google": [
        (403, _google(403, "PERMISSION_DENIED", "forbidden")),
        (400, _google(400, "INVALID_ARGUMENT", "invalid")),
        (429, _google(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded")),
        (429, _google(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded")),
    ],
    "apertium": [
        (401, _apertium(401, "Unauthorized")),
        (401, _apertium(401, "Unauthorized")),
        (429, _apertium(429, MESSAGE)),
        (429, _apertium(429, MESSAGE)),
    ],
    "games": [_UNAUTHORIZED, _UNAUTHORIZED, _LATER, _LATER],
    "microsoft": [
        (status, {"error": {"code": code, "message": MESSAGE}})
        for status, code in ((401, 401000), (401, 401000), (429, 429000), (403, 403001))
    ],
}


def _added(app: FastAPI, file: KeyFile, limits: KeyLimits) -> str:
    _, key = file.add("client", limits)
    app.state.server.key_gate.synchronize()
    return key


def test_every_protocol_is_in_the_table() -> None:
    assert CALLS.keys() == EXPECTED.keys() == PROTOCOLS.keys() - {"live"}  # it has the errors of native


@pytest.mark.parametrize("name", CALLS)
def test_errors_have_the_status_and_the_fields_of_their_protocol(
    app: FastAPI, client: TestClient, keys: KeyFile, name: str
) -> None:
    slow = _added(app, keys, KeyLimits(requests_per_minute=1))
    poor = _added(app, keys, KeyLimits(characters_per_day=len(TEXT) + 1))
    call = CALLS[name]
    for key in (slow, poor):
        assert call.send(client, key)[0] == 200
    answers = [call.send(client, key) for key in (None, "kvasir-00000000-x", slow, poor)]
    assert [answer[:2] for answer in answers] == EXPECTED[name]
    for status, _, headers in answers:
        assert headers.get("www-authenticate") == ("Bearer" if status == 401 else None)  # RFC 9110, section 15.5.2
    assert 1 <= int(answers[2][2]["retry-after"]) <= 60
    assert 1 <= int(answers[3][2]["retry-after"]) <= 24 * 3600


@pytest.mark.parametrize("name", CALLS)
def test_characters_are_counted_once_and_those_of_rejected_requests_never(
    app: FastAPI, client: TestClient, keys: KeyFile, echo: EchoGenerator, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = _added(app, keys, KeyLimits(characters_per_day=3 * len(TEXT)))
    headers = {"Authorization": f"Bearer {key}"}

    def used() -> object:
        return client.get("/v2/usage", headers=headers).json()["character_count"]

    call = CALLS[name]
    assert call.send(client, key)[0] == 200
    assert call.send(client, key)[0] == 200  # from the cache
    assert used() == 2 * len(TEXT)
    with monkeypatch.context() as patch:
        patch.setattr(echo, "error", EngineFailed("a defect"))
        assert replace(call, bypasses_cache=True).send(client, key)[0] == 500
    with monkeypatch.context() as patch:
        patch.setattr(echo, "error", QueueFull("full", 1.0))
        assert replace(call, bypasses_cache=True).send(client, key)[0] == 429
    assert used() == 2 * len(TEXT)
    assert call.send(client, key)[0] == 200
    assert call.send(client, key)[0] in (403, 429, 456)
    assert used() == 3 * len(TEXT)


NATIVE, DEEPL, LIBRETRANSLATE, GOOGLE = "/v1/models", "/v2/usage", "/translate", "/language/translate/v2/languages"


@pytest.fixture(scope="module")
def keyed_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys") / "keys.sqlite"


@pytest.fixture(scope="module")
def team_key(keyed_path: Path) -> str:
    file = KeyFile(keyed_path)
    _, text = file.add("team", KeyLimits())
    file.close()
    return text


@pytest.fixture(scope="module")
def keyed_client(team_key: str, keyed_path: Path, echo_for: EchoFor) -> Iterator[TestClient]:
    app: FastAPI = create_app(Settings(api_keys=keyed_path), [echo_for("en", "de")])
    with TestClient(app) as keyed_client:
        yield keyed_client


@pytest.mark.parametrize(
    ("address", "header", "value", "is_accepted"),
    [
        (NATIVE, "Authorization", "Bearer {}", True),
        (NATIVE, "Authorization", "bearer  {} ", True),
        (NATIVE, "Authorization", "DeepL-Auth-Key {}", True),
        (NATIVE, "Authorization", "Basic {}", False),
        (NATIVE, "Authorization", "Bearer ", False),
        (NATIVE, "Authorization", "Bearer {}x", False),
        (NATIVE, "X-Goog-Api-Key", "{}", False),
        (GOOGLE, "X-Goog-Api-Key", "{}", True),
    ],
)
def test_a_key_in_a_header(
    keyed_client: TestClient, team_key: str, address: str, header: str, value: str, is_accepted: bool
) -> None:
    status = keyed_client.get(address, headers={header: value.format(team_key)}).status_code
    assert (status not in (400, 401, 403)) == is_accepted, status


@pytest.mark.parametrize(
    ("address", "query", "is_accepted"),
    [
        (NATIVE, "api_key", False),
        (NATIVE, "key", False),
        (DEEPL, "auth_key", True),
        (DEEPL, "api_key", False),
        (GOOGLE, "key", True),
    ],
)
def test_a_key_in_the_query(
    keyed_client: TestClient, team_key: str, address: str, query: str, is_accepted: bool
) -> None:
    assert (keyed_client.get(address, params={query: team_key}).status_code not in (400, 401, 403)) == is_accepted
    assert keyed_client.get(address, params={query: team_key + "x"}).status_code in (400, 401, 403)


@pytest.mark.parametrize(("num_fields", "is_accepted"), [(2000, True), (2001, False)])
def test_a_key_is_not_looked_for_among_very_many_fields(
    keyed_client: TestClient, team_key: str, num_fields: int, is_accepted: bool
) -> None:
    address = f"{DEEPL}?" + "a=1&" * (num_fields - 1) + f"auth_key={team_key}"
    assert keyed_client.get(address).status_code == (200 if is_accepted else 403)


@pytest.mark.parametrize("address", ["/languages", "/frontend/settings", "/health/live", "/metrics", "/"])
def test_open_paths_need_no_key(keyed_client: TestClient, address: str) -> None:
    assert keyed_client.get(address).status_code == 200


def test_a_key_that_is_not_in_the_head_may_be_in_the_body_of_its_protocol_only(
    keyed_client: TestClient, team_key: str
) -> None:
    fields = {"q": "Tea.", "source": "en", "target": "de", "api_key": team_key}
    assert keyed_client.post(LIBRETRANSLATE, json=fields).status_code == 200
    assert keyed_client.post("/v1/translate", json={"text": "Tea.", "api_key": team_key}).status_code == 401
    assert keyed_client.get("/v2/usage").status_code == 403, "a request that has no body"
