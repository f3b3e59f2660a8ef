"""Texts over HTTP: decoding options, detection of languages, and quality."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from bundle.loading import Bundle
from bundle.manifest import QualityCalibration
from server.http.app import create_app
from server.interface.request import FinishReason, Sampling, SentenceParams
from server.operations.settings import Settings
from server.text.tokenizers.registry import open_tokenizer
from tests.fakes.echo import EchoFor, EchoGenerator


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [echo])) as client:
        yield client


def _params(client: TestClient, echo: EchoGenerator, **body: object) -> SentenceParams:
    answer = client.post("/v1/translate", json={"text": "Tea."} | body)
    assert answer.status_code == 200, answer.text
    return echo.batches[-1][0].params


def test_a_kept_sentence_has_its_reason_here_and_no_field_in_other_protocols(
    client: TestClient, echo: EchoGenerator
) -> None:
    german = "Wo ist der Bahnhof hier?"
    [answer] = client.post("/v1/translate", json={"text": german}).json()["translations"]
    assert answer["text"] == german
    assert answer["details"] == {"kept": [{"text": german, "reason": "already_in_target_language"}]}
    other = client.post("/translate", json={"q": german, "source": "en", "target": "de"})
    assert other.json() == {"translatedText": german}
    assert not echo.batches
    metrics = client.get("/metrics").text
    assert 'kvasir_kept_sentences_total{reason="already_in_target_language"} 2.0' in metrics


def test_a_text_is_one_sentence_without_division(client: TestClient, echo: EchoGenerator) -> None:
    text = "Where is the tea? Where is the dog?"
    [answer] = client.post("/v1/translate", json={"text": text, "split": False}).json()["translations"]
    assert answer["text"] == text
    assert len(echo.batches[-1]) == 1
    echo.finish_reason = FinishReason.REPETITION
    [answer] = client.post("/v1/translate", json={"text": "Where is the cup?"}).json()["translations"]
    assert answer["details"] == {"incomplete": ["Where is the cup?"]}
    assert 'kvasir_checked_sentences_total{outcome="incomplete"} 1.0' in client.get("/metrics").text


def test_text_reaches_the_engine_as_target_tokens(client: TestClient, echo: EchoGenerator, echo_bundle: Bundle) -> None:
    encode = open_tokenizer(echo_bundle).encode_target
    params = _params(
        client, echo, target_prefix="Guten Morgen", suppress_phrases=["Tee", "ein Glas"], required_phrases=["Wasser"]
    )
    assert params.target_prefix == tuple(encode("Guten Morgen"))
    assert params.suppress_phrases == (tuple(encode("Tee")), tuple(encode("ein Glas")))
    assert params.required_phrases == (tuple(encode("Wasser")),)
    assert params.max_new_tokens == echo_bundle.config.shapes.max_target_tokens - len(params.target_prefix)


def test_each_text_has_its_own_prefix_and_is_one_sentence(client: TestClient, echo: EchoGenerator) -> None:
    body = {"text": ["Tea. Tea.", "\n", "Tea. Good. Tea."], "target_prefix": ["Tee", "Wo", ""]}
    answer = client.post("/v1/translate", json=body)
    assert answer.status_code == 200
    assert len(echo.batches[-1]) == 2
    prefixes = {len(request.source): bool(request.params.target_prefix) for request in echo.batches[-1]}
    assert prefixes[max(prefixes)] is False
    assert prefixes[min(prefixes)] is True
    assert answer.json()["translations"][1]["text"] == "\n"


def test_the_length_ratio_counts_source_tokens_and_never_exceeds_the_limit(
    client: TestClient, echo: EchoGenerator
) -> None:
    source_len = len(echo.bundle.config.name) and len(open_tokenizer(echo.bundle).encode("Tea."))
    assert _params(client, echo, max_length_ratio=1.5).max_new_tokens == -(-3 * source_len // 2)
    assert _params(client, echo, max_length_ratio=50, max_new_tokens=9).max_new_tokens == 9
    short = _params(client, echo, max_length_ratio=0.1, min_new_tokens=5)
    assert (short.max_new_tokens, short.min_new_tokens) == (1, 0)


def test_any_option_of_sampling_samples_one_hypothesis_a_row(client: TestClient, echo: EchoGenerator) -> None:
    params = _params(client, echo, temperature=0.7, top_k=5, top_p=0.9, min_p=0.1, seed=3, num_hypotheses=2)
    assert params.sampling == Sampling(0.7, 5, 0.9, 0.1, 3)
    assert (params.beam_size, params.num_rows) == (1, 2)
    assert _params(client, echo, seed=4).sampling == Sampling(seed=4)
    assert _params(client, echo).sampling is None


def test_without_a_seed_a_random_one_is_returned(client: TestClient, echo: EchoGenerator) -> None:
    seeds = [client.post("/v1/translate", json={"text": "Tea.", "top_p": 0.9}).json()["seed"] for _ in range(3)]
    assert len(set(seeds)) == 3
    assert [batch[0].params.sampling for batch in echo.batches] == [Sampling(top_p=0.9, seed=seed) for seed in seeds]
    assert "seed" not in client.post("/v1/translate", json={"text": "Tea."}).json()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"temperature": 0}, ["temperature", "0.001"]),
        ({"suppress_tokens": [100_000]}, ["suppress_tokens", "100000", "from 0 to"]),
        ({"suppress_phrases": ["  "]}, ["suppress_phrases", "other than white space"]),
        ({"suppress_phrases": ["日本"]}, ["suppress_phrases", "日本", "cannot write"]),
        ({"target_prefix": ["Tee", "Tee"]}, ["target_prefix", "2 entries", "1 texts"]),
        ({"temperature": 1, "beam_size": 4}, ["temperature", "beam_size of 4"]),
        ({"diversity_penalty": 1}, ["`diversity_penalty` is 1", "num_beam_groups"]),
        ({"required_phrases": ["ein Glas Wasser"], "max_new_tokens": 3}, ["`required_phrases` may have 2 tokens"]),
        (
            {"beam_size": 4, "patience": 0.5, "num_hypotheses": 3},
            ["`num_hypotheses` must be from 1 to 2", "patience", "Given: 3"],
        ),
    ],
    ids=str,
)
def test_invalid_options_are_rejected_with_both_names_or_the_range(
    client: TestClient, echo: EchoGenerator, body: dict[str, object], words: list[str]
) -> None:
    answer = client.post("/v1/translate", json={"text": "Tea."} | body)
    assert answer.status_code == 422, answer.text
    message = answer.json()["error"]["message"]
    assert all(word in message for word in words), message
    assert echo.batches == []


def test_the_language_of_each_text_is_detected_if_the_source_is_auto(client: TestClient) -> None:
    body = {"text": ["Where is the station?", "12:30", "Привет, как дела?"], "source": "auto", "target": "de"}
    answer = client.post("/v1/translate", json=body).json()
    sure, nothing, unsure = (each.get("detected_language") for each in answer["translations"])
    assert sure["language"] == unsure["language"] == "en"
    assert sure["confidence"] > 0.95
    assert unsure["confidence"] < 0.05
    assert nothing is None
    assert answer["model"] == "echo-en-de"


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


def test_detection_alone_returns_the_candidates_of_each_text(echo_for: EchoFor) -> None:
    with TestClient(create_app(Settings(), [echo_for("en", "de"), echo_for("de", "en")])) as client:
        answer = client.post("/v1/detect", json={"text": ["Wo ist der Bahnhof?", "42", "Where is it?"]}).json()
        one = client.post("/v1/detect", json={"text": "Wo ist der Bahnhof?"}).json()
    first, nothing, last = answer["detections"]
    assert [[each["language"] for each in candidates] for candidates in (first, last)] == [["de", "en"], ["en", "de"]]
    assert nothing == []
    assert one["detections"] == [first]
    assert first[0]["confidence"] > 0.9 > first[1]["confidence"]


TEXT = "Where is the tea?"
# Every sentence has the quality 0.5.
EVEN = QualityCalibration(
    bias=0, log_probability=0, source_tokens=0, characters_per_token=0, length_ratio=0, usual_length_ratio=0
)


def _calibrated_client(echo: EchoGenerator, settings: Settings) -> TestClient:
    config = echo.bundle.config.model_copy(update={"quality": {"en-de": EVEN}})
    return TestClient(create_app(settings, [EchoGenerator(replace(echo.bundle, config=config))]))


@pytest.fixture
def calibrated(echo: EchoGenerator) -> Iterator[TestClient]:
    with _calibrated_client(echo, Settings()) as calibrated:
        yield calibrated


def _calibrated_answer(calibrated: TestClient, **body: object) -> dict[str, object]:
    response = calibrated.post("/v1/translate", json={"text": TEXT} | body)
    assert response.status_code == 200, response.text
    [answer] = response.json()["translations"]
    return dict(answer)


def test_doubtful_sentences_are_named_or_kept_and_counted(calibrated: TestClient) -> None:
    assert "details" not in _calibrated_answer(calibrated, min_quality=0.5)
    named = {"text": TEXT, "translation": TEXT, "quality": 0.5}
    assert _calibrated_answer(calibrated, min_quality=0.6)["details"] == {"low_quality": [named]}
    kept = [{"text": TEXT, "reason": "low_quality"}]
    answer = _calibrated_answer(calibrated, min_quality=0.6, on_low_quality="keep_source")
    assert answer["details"] == {"kept": kept, "low_quality": [named]}
    metrics = calibrated.get("/metrics").text
    assert "kvasir_low_quality_sentences_total 2.0" in metrics
    assert 'kvasir_kept_sentences_total{reason="low_quality"} 1.0' in metrics


def _document(calibrated: TestClient, **form: str) -> dict[str, object]:
    text = f"{TEXT}\n\nDas ist schon ein deutscher Satz.\n"
    files = {"file": ("a.txt", text.encode())}
    document_id = calibrated.post("/v1/documents", files=files, data={"source": "en", "target": "de", **form}).json()[
        "id"
    ]
    assert calibrated.portal is not None
    calibrated.portal.call(cast(FastAPI, calibrated.app).state.server.documents.wait, document_id)
    return dict(calibrated.get(f"/v1/documents/{document_id}").json())


def test_a_document_has_a_summary(calibrated: TestClient) -> None:
    kept = {"already_in_target_language": 1}
    assert _document(calibrated)["details"] == {"kept": kept}
    assert _document(calibrated, return_quality="true", if_already_target="translate")["details"] == {"quality": 0.5}
    details = _document(calibrated, min_quality="0.6", on_low_quality="keep_source")["details"]
    assert details == {"kept": {**kept, "low_quality": 1}, "low_quality": 1}
    wrong = calibrated.post("/v1/documents", files={"file": ("a.txt", b"Tea.")}, data={"min_quality": "2"})
    assert wrong.status_code == 422
    assert "min_quality" in wrong.text


def test_the_quality_is_a_field_of_the_text_and_of_its_sentences(calibrated: TestClient) -> None:
    answer = _calibrated_answer(calibrated, return_quality=True)
    assert answer["quality"] == 0.5
    assert answer["details"] == {"quality": [{"text": TEXT, "translation": TEXT, "quality": 0.5}]}
    assert "quality" not in _calibrated_answer(calibrated)
