"""`source: "auto"` in the native protocol."""

import json
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoFor, EchoGenerator


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


def test_the_answer_states_for_each_text_whether_it_was_translated(client: TestClient) -> None:
    texts = ["Where is the station?", "12:30", ""]
    answer = client.post("/v1/translate", json={"text": texts, "source": "auto", "target": "de"}).json()
    assert [each["translated"] for each in answer["translations"]] == [True, False, False]


def test_a_text_in_the_target_language_is_returned_and_marked_as_not_translated(echo_for: EchoFor) -> None:
    there, back = echo_for("en", "de"), echo_for("de", "en")
    texts = ["Wo ist der Bahnhof, bitte?", "Where is the station, please?"]
    body = {"text": texts, "source": "auto", "target": "de"}
    with TestClient(create_app(Settings(), [there, back])) as client:
        answer = client.post("/v1/translate", json=body).json()
        streamed = client.post("/v1/translate", json={**body, "stream": True}).text
    german, english = answer["translations"]
    assert (german["text"], german["translated"]) == (texts[0], False)
    assert german["detected_language"]["language"] == "de"
    assert english["translated"] is True
    [done] = [line for line in streamed.splitlines() if line.startswith("data:") and "translations" in line]
    flags = [each["translated"] for each in json.loads(done.removeprefix("data:"))["translations"]]
    assert flags == [False, True]


def test_an_answer_without_detection_has_no_field_for_it(client: TestClient) -> None:
    answer = client.post("/v1/translate", json={"text": "Tea.", "source": "en", "target": "de"}).json()
    assert "translated" not in answer["translations"][0]


def test_untranslated_texts_are_valid_utf_8(client: TestClient) -> None:
    for body in (
        '{"text": "\\ud800", "source": "auto"}',
        '{"text": ["\\ud800", "tea"], "source": "auto", "stream": true}',
    ):
        answer = client.post("/v1/translate", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 200
        assert "\N{REPLACEMENT CHARACTER}" in answer.text


def test_detection_alone_returns_the_candidates_of_each_text(echo_for: EchoFor) -> None:
    with TestClient(create_app(Settings(), [echo_for("en", "de"), echo_for("de", "en")])) as client:
        answer = client.post("/v1/detect", json={"text": ["Wo ist der Bahnhof?", "42", "Where is it?"]}).json()
        one = client.post("/v1/detect", json={"text": "Wo ist der Bahnhof?"}).json()
    first, nothing, last = answer["detections"]
    assert [[each["language"] for each in candidates] for candidates in (first, last)] == [["de", "en"], ["en", "de"]]
    assert nothing == []
    assert one["detections"] == [first]
    assert first[0]["confidence"] > 0.9 > first[1]["confidence"]


def test_detection_returns_at_most_five_candidates(echo: EchoGenerator) -> None:
    settings = Settings(detect_languages=["en", "de", "fr", "es", "it", "nl", "sv"])
    with TestClient(create_app(settings, [echo])) as client:
        [candidates] = client.post("/v1/detect", json={"text": "Wo ist der Bahnhof?"}).json()["detections"]
    assert len(candidates) == 5
    assert candidates[0]["language"] == "de"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_request"),
        ({"text": [1]}, "invalid_request"),
        ({"text": "a", "q": "b"}, "invalid_request"),
        ({"text": ["a"] * 20_000}, "invalid_request"),
        ({"text": "a " * 100_000}, "text_too_long"),
    ],
)
def test_detection_rejects_what_translation_rejects(client: TestClient, body: dict[str, object], code: str) -> None:
    answer = client.post("/v1/detect", json=body)
    assert (answer.status_code // 100, answer.json()["error"]["code"]) == (4, code)
