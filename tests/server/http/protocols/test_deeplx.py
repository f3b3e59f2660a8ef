"""The DeepLX-compatible protocol, with engines that answer with their source."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.interface.errors import QueueFull
from server.operations.api_keys.key_file import KeyFile, KeyLimits
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator

ENGLISH = "Where is the railway station?"
FIELDS = {"text": ENGLISH, "source_lang": "EN", "target_lang": "DE"}
ADDRESSES = ("/translate", "/v1/translate", "/deeplx", "/deeplx/translate", "/deeplx/v1/translate")


@pytest.fixture
def echoes(echo_for: EchoFor) -> list[EchoGenerator]:
    return [echo_for("en", "de"), echo_for("de", "en")]


@pytest.fixture
def client(echoes: list[EchoGenerator]) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(max_text_characters=1000, max_body_bytes=5000), echoes)) as client:
        yield client


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("media_type", ["application/json", "text/plain; charset=utf-8"])
def test_a_text_is_translated_at_every_address(client: TestClient, address: str, media_type: str) -> None:
    answer = client.post(address, content=json.dumps(FIELDS), headers={"Content-Type": media_type})
    assert answer.status_code == 200, answer.text
    fields = answer.json()
    assert isinstance(fields.pop("id"), int)
    assert fields == {
        "code": 200,
        "data": ENGLISH,
        "alternatives": [],  # Subtitle Edit prefers its first entry
        "source_lang": "EN",
        "target_lang": "DE",
        "method": "Free",
    }


@pytest.mark.parametrize("source", ["auto", "AUTO", "", None])
def test_a_missing_source_language_is_detected(client: TestClient, source: str | None) -> None:
    answer = client.post("/translate", json=FIELDS | {"source_lang": source}).json()
    assert (answer["data"], answer["source_lang"]) == (ENGLISH, "EN")


def test_tags_are_kept_on_request(client: TestClient) -> None:
    text = "Tea <b>now</b>."
    assert client.post("/translate", json=FIELDS | {"text": text, "tag_handling": "html"}).json()["data"] == text
    assert client.post("/translate", json=FIELDS | {"tag_handling": "rtf"}).status_code == 400


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"text": ""}, 404),
        ({"text": 5}, 400),
        ({"target_lang": "JA"}, 406),
        ({"text": "Tea. " * 300}, 413),
        ({"text": "Tea. " * 3000}, 413),
    ],
)
def test_errors_have_their_status_as_code(client: TestClient, fields: dict[str, object], status: int) -> None:
    answer = client.post("/translate", json=FIELDS | fields)
    assert answer.status_code == status
    if len(str(fields)) < 5000:  # a larger body is not read, so that its protocol is unknown
        assert answer.json() == {"code": status, "message": answer.json()["message"], "data": ""}


def test_overload_has_the_seconds_to_wait(client: TestClient, echoes: list[EchoGenerator]) -> None:
    for echo in echoes:
        echo.error = QueueFull("full", 2.5)
    answer = client.post("/translate", json=FIELDS)
    assert (answer.status_code, answer.json()["code"], answer.headers["Retry-After"]) == (429, 429, "3")


def test_the_form_of_deepls_page(client: TestClient) -> None:
    lang = {"source_lang_user_selected": "EN", "target_lang": "DE"}
    params = {"texts": [{"text": ENGLISH, "requestAlternatives": 3}], "lang": lang, "splitting": "newlines"}
    call = {"jsonrpc": "2.0", "method": "LMT_handle_texts", "id": 86, "params": params}
    answer = client.post("/deeplx/jsonrpc", json=call).json()
    assert answer == {"jsonrpc": "2.0", "id": 86, "result": {"texts": [{"text": ENGLISH}], "lang": "EN"}}
    broken = client.post("/deeplx/jsonrpc", json={"params": {"texts": "Tea.", "lang": lang}})
    assert (broken.status_code, broken.json()["code"]) == (400, 400)


def test_the_token_is_an_api_key(tmp_path: Path, echo: EchoGenerator) -> None:
    _, key = KeyFile(tmp_path / "keys.sqlite").add("team", KeyLimits())
    with TestClient(create_app(Settings(api_keys=tmp_path / "keys.sqlite"), [echo])) as client:
        for scheme in ("Bearer", "DeepL-Auth-Key"):
            headers = {"Authorization": f"{scheme} {key}"}
            assert client.post("/translate", json=FIELDS, headers=headers).status_code == 200
        assert client.post(f"/translate?token={key}", json=FIELDS).status_code == 200
        for answer in (client.post("/translate", json=FIELDS), client.post("/translate?token=x", json=FIELDS)):
            assert (answer.status_code, answer.json()["code"]) == (401, 401)
