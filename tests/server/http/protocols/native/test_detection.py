"""`source: "auto"` in the native protocol."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [echo])) as client:
        yield client


def test_the_language_of_each_text_is_detected_if_the_source_is_auto(client: TestClient) -> None:
    body = {"text": ["Where is the station?", "12:30", "Привет, как дела?"], "source": "auto", "target": "de"}
    answer = client.post("/v1/translate", json=body).json()
    sure, nothing, unsure = (each.get("detected_language") for each in answer["translations"])
    assert sure["language"] == unsure["language"] == "en"
    assert sure["confidence"] > 0.95
    assert unsure["confidence"] < 0.05
    assert nothing is None
    assert answer["model"] == "echo-en-de"


def test_untranslated_texts_are_valid_utf_8(client: TestClient) -> None:
    for body in (
        '{"text": "\\ud800", "source": "auto"}',
        '{"text": ["\\ud800", "tea"], "source": "auto", "stream": true}',
    ):
        answer = client.post("/v1/translate", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 200
        assert "\N{REPLACEMENT CHARACTER}" in answer.text
