"""Errors of API keys, and the characters counted, in every protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from server.http.protocols.registry import PROTOCOLS
from server.interface.errors import EngineFailed, QueueFull
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from tests.fakes.echo import EchoGenerator

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
