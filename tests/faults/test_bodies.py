"""Bodies of very many values: they are rejected before a parser or a validator holds the event loop."""

import json
from collections.abc import Iterator

import pytest
from pydantic import ValidationError
from starlette.testclient import TestClient

from server.http.app import create_app
from server.http.protocols.native.texts import TranslateBody
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

MANY = 49_000
MAX_ERRORS = 2100


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [echo])) as client:
        yield client


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": [' + b'"",' * 1_300_000 + b'""]}',
        b'{"text": ' + b"[" * 60_000 + b"]" * 60_000 + b"}",
        b'{"text": [' + b"{}," * 60_000 + b"1]}",
    ],
    ids=["empty strings", "nested lists", "objects"],
)
@pytest.mark.parametrize("path", ["/v1/translate", "/translate", "/v2/translate", "/v1/score"])
def test_a_body_of_too_many_values_is_rejected(client: TestClient, path: str, body: bytes) -> None:
    answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 413, 422)
    assert len(answer.content) < 1000


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/translate"), ("GET", "/apertium/translate"), ("POST", "/imme")]
)
def test_json_that_is_declared_as_a_form_is_counted(client: TestClient, method: str, path: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b"  " + json.dumps({"q": [""] * 60_000}).encode()
    answer = client.request(method, path, content=body, headers=headers)
    assert answer.status_code == 400
    assert "values" in answer.text
    commas = client.post("/translate", content=b"q=" + b"," * 60_000 + b"&source=en&target=de", headers=headers)
    assert commas.status_code == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("suppress_tokens", ["a"] * MANY),
        ("suppress_phrases", [1] * MANY),
        ("required_phrases", [[1] * MANY]),
        ("target_prefix", [1] * MANY),
        ("glossary", {str(number): 1 for number in range(MANY // 2)}),
        ("text", [1] * MANY),
    ],
)
def test_wrong_items_are_not_described_one_by_one(client: TestClient, name: str, value: object) -> None:
    fields = {"text": "a", name: value}
    with pytest.raises(ValidationError) as error:
        TranslateBody.model_validate(fields)
    assert error.value.error_count() < MAX_ERRORS
    answer = client.post("/v1/translate", json=fields)
    assert answer.status_code == 422
    assert name in answer.json()["error"]["message"]
    assert len(answer.content) < 5000
