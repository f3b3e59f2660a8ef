"""Quality over HTTP: fields of the response, ranges of the options, and other protocols."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from bundle.manifest import QualityCalibration
from server.http.app import create_app
from server.operations.settings import Settings
from tests.fakes.echo import EchoGenerator

TEXT = "Where is the tea?"
# Every sentence has the quality 0.5.
EVEN = QualityCalibration(
    bias=0, log_probability=0, source_tokens=0, characters_per_token=0, length_ratio=0, usual_length_ratio=0
)


def _client(echo: EchoGenerator, settings: Settings) -> TestClient:
    config = echo.bundle.config.model_copy(update={"quality": {"en-de": EVEN}})
    return TestClient(create_app(settings, [EchoGenerator(replace(echo.bundle, config=config))]))


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with _client(echo, Settings()) as client:
        yield client


def _answer(client: TestClient, **body: object) -> dict[str, object]:
    response = client.post("/v1/translate", json={"text": TEXT} | body)
    assert response.status_code == 200, response.text
    [answer] = response.json()["translations"]
    return dict(answer)


def test_the_quality_is_a_field_of_the_text_and_of_its_sentences(client: TestClient) -> None:
    answer = _answer(client, return_quality=True)
    assert answer["quality"] == 0.5
    assert answer["details"] == {"quality": [{"text": TEXT, "translation": TEXT, "quality": 0.5}]}
    assert "quality" not in _answer(client)


def test_doubtful_sentences_are_named_or_kept_and_counted(client: TestClient) -> None:
    assert "details" not in _answer(client, min_quality=0.5)
    named = {"text": TEXT, "translation": TEXT, "quality": 0.5}
    assert _answer(client, min_quality=0.6)["details"] == {"low_quality": [named]}
    kept = [{"text": TEXT, "reason": "low_quality"}]
    answer = _answer(client, min_quality=0.6, on_low_quality="keep_source")
    assert answer["details"] == {"kept": kept, "low_quality": [named]}
    metrics = client.get("/metrics").text
    assert "kvasir_low_quality_sentences_total 2.0" in metrics
    assert 'kvasir_kept_sentences_total{reason="low_quality"} 1.0' in metrics


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("min_quality", 1.1, "at most 1"),
        ("min_quality", -0.1, "at least 0"),
        ("on_low_quality", "drop", "'flag' or 'keep_source'"),
        ("return_quality", 1, "boolean"),
    ],
)
def test_a_wrong_value_is_rejected_with_the_range(client: TestClient, name: str, value: object, allowed: str) -> None:
    response = client.post("/v1/translate", json={"text": TEXT, name: value})
    assert response.status_code == 422
    assert name in response.text
    assert allowed in response.text


def test_a_model_without_calibration_answers_422_with_the_way_out(echo: EchoGenerator) -> None:
    with TestClient(create_app(Settings(), [echo])) as client:
        response = client.post("/v1/translate", json={"text": TEXT, "return_quality": True})
    assert response.status_code == 422
    assert "run `kvasir calibrate`" in response.json()["error"]["message"]


def test_other_protocols_get_the_sources_and_no_fields(echo: EchoGenerator) -> None:
    with _client(echo, Settings(min_quality=0.9, on_low_quality="keep_source")) as client:
        response = client.post("/translate", json={"q": TEXT, "source": "en", "target": "de"})
        assert response.json() == {"translatedText": TEXT}
        assert 'kvasir_kept_sentences_total{reason="low_quality"} 1.0' in client.get("/metrics").text


def _document(client: TestClient, **form: str) -> dict[str, object]:
    text = f"{TEXT}\n\nDas ist schon ein deutscher Satz.\n"
    files = {"file": ("a.txt", text.encode())}
    document_id = client.post("/v1/documents", files=files, data={"source": "en", "target": "de", **form}).json()["id"]
    assert client.portal is not None
    client.portal.call(cast(FastAPI, client.app).state.server.documents.wait, document_id)
    return dict(client.get(f"/v1/documents/{document_id}").json())


def test_a_document_has_a_summary(client: TestClient) -> None:
    kept = {"already_in_target_language": 1}
    assert _document(client)["details"] == {"kept": kept}
    assert _document(client, return_quality="true", if_already_target="translate")["details"] == {"quality": 0.5}
    details = _document(client, min_quality="0.6", on_low_quality="keep_source")["details"]
    assert details == {"kept": {**kept, "low_quality": 1}, "low_quality": 1}
    wrong = client.post("/v1/documents", files={"file": ("a.txt", b"Tea.")}, data={"min_quality": "2"})
    assert wrong.status_code == 422
    assert "min_quality" in wrong.text
