"""Options over HTTP with the model that comes along."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from server.http.app import create_app
from server.operations.settings import Settings

TEXT = "The old house by the river is very beautiful."


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(Settings(threads=1))) as client:
        yield client


def _translate(client: TestClient, **body: object) -> dict[str, Any]:
    answer = client.post("/v1/translate", json={"text": TEXT, "return_scores": True} | body)
    assert answer.status_code == 200, answer.text
    translation: dict[str, Any] = answer.json()["translations"][0]
    return translation


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_score_of_an_answer_is_its_log_probability_whatever_options_it_was_found_with(
    client: TestClient, beam_size: int
) -> None:
    options: list[dict[str, object]] = [
        {},
        {"repetition_penalty": 1.5, "suppress_phrases": ["Haus"]},
        {"no_repeat_ngram_size": 1, "min_new_tokens": 15},
        {"coverage_penalty": 0.3} if beam_size > 1 else {"seed": 3, "top_k": 5},
        {"num_beam_groups": 2, "diversity_penalty": 2.0, "num_hypotheses": 4} if beam_size > 1 else {"seed": 1},
    ]
    for each in options:
        beams = {} if "seed" in each else {"beam_size": beam_size}
        found = _translate(client, return_token_scores=True, return_alignments=True, **beams, **each)
        assert found["finish_reason"] == "stop"
        [sentence] = found["sentences"]
        assert math.fsum(sentence["token_scores"]) == pytest.approx(found["log_probability"], abs=1e-4)
        assert sentence["target_tokens"][-1] == "</s>"
        assert len(sentence["alignment"]) == len(sentence["target_tokens"]) - 1
        assert max(sentence["alignment"]) < len(sentence["source_tokens"]) - 1
        body = {"text": TEXT, "translation": found["text"], "return_token_scores": True}
        [scored] = client.post("/v1/score", json=body).json()["scores"]
        if scored["sentence"]["target_tokens"] == sentence["target_tokens"]:  # text may be cut otherwise
            assert scored["log_probability"] == pytest.approx(found["log_probability"], abs=1e-3)
            assert scored["score"] == pytest.approx(scored["log_probability"] / scored["target_tokens"])


def test_a_translation_begins_as_it_was_told_and_another_is_forbidden(client: TestClient) -> None:
    plain = _translate(client)["text"]
    assert _translate(client, target_prefix="Ein altes Haus")["text"].startswith("Ein altes Haus")
    word = next(word for word in plain.split() if word.lower() in ("haus", "das", "der"))
    assert word not in _translate(client, suppress_phrases=[word])["text"].split()


def test_required_phrases_are_in_the_translation(client: TestClient) -> None:
    for phrases in (["Ufer"], ["Gebäude", "wunderschön"]):
        found = _translate(client, required_phrases=phrases, beam_size=6)
        assert all(phrase in found["text"] for phrase in phrases), found
        assert found["finish_reason"] == "stop"


def test_alternatives_differ_behind_the_prefix(client: TestClient) -> None:
    found = _translate(client, target_prefix="Das", num_hypotheses=4, return_alternatives=True)
    texts = [found["text"], *(other["text"] for other in found["alternatives"])]
    assert all(text.startswith("Das") for text in texts)
    assert len(set(texts)) >= 3  # different tokens may be the same text
