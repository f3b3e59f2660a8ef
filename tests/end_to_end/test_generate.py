"""`POST /v1/generate` with checkpoints of several families, against `generate` of transformers."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient

from kvasir_client import Client, GenerationResult, TextDelta
from server.http.app import create_app
from server.operations.settings import Settings
from tests.end_to_end.generating import FAMILIES, SETTINGS, Generating
from tests.fakes.event_stream import read_events, texts_of
from tests.model.families.family_checkpoints import SENTENCES, FamilyCheckpoint

TEXTS = [text[:28] for text in SENTENCES[:5]]


def _generate(generating: Generating, body: Mapping[str, object]) -> list[dict[str, Any]]:
    generations: list[dict[str, Any]] = generating.client.post("/v1/generate", json=body).json()["generations"]
    return generations


def _reference(saved: FamilyCheckpoint, texts: list[str], **settings: object) -> tuple[list[str], list[float]]:
    tokenizer: Any = saved.tokenizer
    found, scores = [], []
    for text in texts:
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            output = saved.reference.generate(
                input_ids=inputs.input_ids,
                attention_mask=inputs.attention_mask,
                return_dict_in_generate=True,
                output_scores=True,
                **settings,
            )
        for row, tokens in enumerate(output.sequences):
            found.append(tokenizer.decode(tokens, skip_special_tokens=True))
            scores.append(float(output.sequences_scores[row]))
    return found, scores


@pytest.mark.parametrize("family", FAMILIES)
def test_texts_are_generated_by_the_settings_of_the_model(family: str, generating: Generating) -> None:
    prefix = "the " if family == "t5" else ""
    expected, scores = _reference(generating.checkpoints[family], [prefix + text for text in TEXTS], **SETTINGS)
    answer = generating.client.post("/v1/generate", json={"model": family, "text": TEXTS, "return_scores": True})
    assert answer.status_code == 200, answer.text
    found = answer.json()["generations"]
    assert [each["text"] for each in found] == expected
    assert [each["score"] for each in found] == pytest.approx(scores, abs=1e-4)
    assert len(set(expected)) > 1


@pytest.mark.parametrize("family", FAMILIES)
def test_options_of_a_request_replace_the_settings_of_the_model(family: str, generating: Generating) -> None:
    settings = SETTINGS | {"num_beams": 4, "length_penalty": 1.0, "max_length": 8, "num_return_sequences": 2}
    prefixed = ["my " + text for text in TEXTS]
    expected, _ = _reference(generating.checkpoints[family], prefixed, **settings)
    options = {"beam_size": 4, "length_penalty": 1.0, "max_new_tokens": 7, "num_hypotheses": 2, "prefix": "my "}
    found = generating.client.post("/v1/generate", json={"model": family, "text": TEXTS, **options}).json()[
        "generations"
    ]
    assert [text for each in found for text in (each["text"], each["alternatives"][0]["text"])] == expected


def test_a_task_has_its_own_prefix_and_options(generating: Generating) -> None:
    models = {model["name"]: model for model in generating.client.get("/v1/models").json()["models"]}
    assert models["t5"]["task_names"] == ["summarization"]
    assert models["t5"]["tasks"][0] == "generate"
    settings = {"bad_words_ids": [[0]], "num_beams": 2, "max_length": 8, "early_stopping": True}
    cleared = {"length_penalty": 1.0, "no_repeat_ngram_size": 0, "min_length": 0}
    expected, _ = _reference(
        generating.checkpoints["t5"], ["summarize: " + text for text in TEXTS], **settings, **cleared
    )
    body = {"model": "t5", "task": "summarization", "text": TEXTS}
    assert [each["text"] for each in _generate(generating, body)] == expected
    wrong = generating.client.post("/v1/generate", json=body | {"task": "poems"})
    assert wrong.status_code == 422
    assert "summarization" in wrong.json()["error"]["message"]


def test_a_stream_has_the_text_of_the_plain_answer(generating: Generating) -> None:
    body = {"model": "bart", "text": TEXTS[:2], "beam_size": 1, "num_hypotheses": 1}
    plain = generating.client.post("/v1/generate", json=body).json()
    streamed = generating.client.post("/v1/generate", json=body | {"stream": True}).text
    assert texts_of(streamed, 2) == [each["text"] for each in plain["generations"]]
    name, last = read_events(streamed)[-1]
    assert name == "done"
    assert last["generations"] == plain["generations"]


def test_a_long_text_is_rejected_with_its_length_or_truncated(generating: Generating) -> None:
    tokenizer: Any = generating.checkpoints["bart"].tokenizer
    text = " ".join(SENTENCES[:9])
    length = len(tokenizer(text).input_ids)
    body = {"model": "bart", "text": [TEXTS[0], text]}
    rejected = generating.client.post("/v1/generate", json=body)
    assert rejected.status_code == 422
    assert rejected.json()["error"]["code"] == "text_too_long"
    assert f"text 1 must have at most 40 tokens with this model. Given: {length}" in rejected.json()["error"]["message"]
    short, cut = _generate(generating, body | {"truncate": True})
    inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=40)
    with torch.no_grad():
        (output,) = generating.checkpoints["bart"].reference.generate(**inputs, **SETTINGS)
    assert cut["text"] == tokenizer.decode(output, skip_special_tokens=True)
    assert (cut["truncated"], cut["source_tokens"], "truncated" in short) == (True, 40, False)


def test_the_python_client_generates_and_streams(generating: Generating) -> None:
    with Client("http://testserver", transport=generating.client._transport) as own:
        one = own.generate(TEXTS[0], model="bart", beam_size=1, return_token_scores=True)
        several = own.generate_with_details(TEXTS, model="bart", beam_size=1)
        *parts, last = own.stream_generation(TEXTS[0], model="bart", beam_size=1)
        assert isinstance(last, GenerationResult)
        assert one.text == several.generations[0].text == last.generations[0].text
        assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == one.text
        assert one.sentence is not None
        assert one.sentence.token_scores is not None
        assert len(one.sentence.token_scores) == one.target_tokens
        assert (several.model, own.models().models[0].tasks) == ("bart", ["generate", "embed"])


def test_sampling_needs_no_beams_of_the_model(generating: Generating) -> None:
    body = {"model": "bart", "text": TEXTS[0], "temperature": 1.5, "seed": 3, "num_hypotheses": 3}
    first, second = (generating.client.post("/v1/generate", json=body).json() for _ in range(2))
    assert first == second
    assert first["seed"] == 3
    assert len(first["generations"][0]["alternatives"]) == 2


@pytest.mark.parametrize(
    ("path", "body", "route"),
    [
        ("/v1/generate", {"model": "en-de"}, "POST /v1/translate"),
        ("/v1/generate", {"model": "none"}, "available"),
        ("/v1/translate", {"source": "en", "target": "xx"}, "available"),
    ],
)
def test_a_model_for_another_task_is_named_with_its_route(
    path: str, body: dict[str, str], route: str, generating: Generating
) -> None:
    answer = generating.client.post(path, json={"text": "my dog", **body})
    assert answer.status_code in (404, 422)
    assert route in answer.json()["error"]["message"]


def test_a_server_without_translating_models_names_the_route_of_its_models(generating: Generating) -> None:
    bundle = generating.bundles / "bart"
    settings = Settings(model=[bundle], engine_processes=False, replicas=1, threads=1)
    with TestClient(create_app(settings)) as client:
        for source in ("auto", None):
            answer = client.post("/v1/translate", json={"text": "my dog", "source": source, "target": "de"})
            assert answer.status_code == 422
            assert answer.json()["error"]["code"] == "unsupported_task"
            assert "bart: POST /v1/generate" in answer.json()["error"]["message"]
        assert client.post("/v1/generate", json={"text": "my dog"}).json()["model"] == "bart"
        assert client.get("/v1/models").json()["pairs"] == []
