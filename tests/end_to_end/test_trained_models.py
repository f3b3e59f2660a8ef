"""Tiny trained models of three families, from their checkpoints to HTTP: their right answers are known."""

from collections.abc import Iterator

import pytest
import torch
from starlette.testclient import TestClient

from export.exporter import export_bundle
from server.http.app import create_app
from server.operations.settings import Settings
from tests.end_to_end.trained_models import FOLDER, train, words

WORDS = words(40, seed=-1)
MIN_RIGHT = 38  # of 40: the models are small, and int8 is no better


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("trained")
    for family in ("bart", "t5", "m2m100"):
        export_bundle(FOLDER / family, folder / family, "int8")
    settings = Settings(model=[folder], engine_processes=False, replicas=1, threads=1, cache_sentences=0)
    with TestClient(create_app(settings)) as client:
        yield client


@pytest.mark.parametrize("beam_size", [1, 4])
def test_bart_reverses_and_t5_sorts(beam_size: int, client: TestClient) -> None:
    for model, expected in (
        ("bart", [word[::-1] for word in WORDS]),
        ("t5", ["".join(sorted(word)) for word in WORDS]),
    ):
        body = {"model": model, "text": WORDS, "beam_size": beam_size, "max_new_tokens": 12}
        answer = client.post("/v1/generate", json=body).json()["generations"]
        right = [found["text"] == wanted for found, wanted in zip(answer, expected, strict=True)]
        assert sum(right) >= MIN_RIGHT, model
        assert {each["finish_reason"] for each in answer} == {"stop"}


def test_m2m100_copies_into_one_language_and_reverses_into_another(client: TestClient) -> None:
    for target, expected in (("de", WORDS), ("fr", [word[::-1] for word in WORDS])):
        body = {"text": WORDS, "source": "en", "target": target}
        answer = client.post("/v1/translate", json=body).json()["translations"]
        right = [found["text"] == wanted for found, wanted in zip(answer, expected, strict=True)]
        assert sum(right) >= MIN_RIGHT, target


def test_the_score_of_the_right_answer_is_the_best(client: TestClient) -> None:
    word = "badcfehg"
    body = {"source": "en", "target": "fr", "text": [word] * 2, "translation": [word[::-1], word]}
    right, wrong = client.post("/v1/score", json=body).json()["scores"]
    assert right["score"] > wrong["score"] + 1


def test_the_models_can_be_trained_again() -> None:
    torch.set_num_threads(1)
    losses = [train("bart", steps)[1] for steps in (2, 12)]
    assert losses[1] < losses[0]
