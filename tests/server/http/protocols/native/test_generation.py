"""Routes of models that do not translate, and scores: the fields that reach the engine, and those of the answers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from bundle.manifest import GenerationDescription, GenerationTask
from bundle.tensors import HIDDEN_STATES
from server.http.app import create_app
from server.interface.request import Completion, FinishReason, Hypothesis, Request, TokenDetails
from server.operations.settings import Settings
from tests.fakes.echo import MAX_TOKENS, EchoGenerator

TASK = GenerationTask(prefix="Where ", options={"beam_size": 2})
GENERATION = GenerationDescription(prefix="", tasks={"where": TASK})
TEXTS = ["Good morning.", "Tea."]
LONG = "Where is the railway station? " * 10


@dataclass
class _Engine(EchoGenerator):
    """Engine that also embeds (the number of tokens, 0, 0, ...) and scores."""

    log_probability: float = -2.0

    def _complete(self, request: Request) -> Completion:
        params, width = request.params, self.bundle.config.shapes.d_model
        if params.pooling is not None:
            vector = np.zeros(width, np.float32)
            vector[0] = len(request.source)
            found = Hypothesis([], 0.0, 0.0, FinishReason.STOP, embedding=vector)
            return Completion(request, [found], FinishReason.STOP)
        if params.forced_target:
            tokens = list(params.forced_target[:-1])
            attention = np.eye(len(params.forced_target), len(request.source), dtype=np.float32)
            details = TokenDetails([-0.5] * len(params.forced_target), [], attention)
            score = self.log_probability / 2
            found = Hypothesis(tokens, self.log_probability, score, FinishReason.STOP, details)
            return Completion(request, [found], FinishReason.STOP)
        return super()._complete(request)


@pytest.fixture
def engine(echo: EchoGenerator) -> _Engine:
    changes = {"encoder_outputs": (HIDDEN_STATES,), "generation": GENERATION}
    config = echo.bundle.config.model_copy(update=changes)
    return _Engine(replace(echo.bundle, config=config))


@pytest.fixture
def app(engine: _Engine) -> FastAPI:
    return create_app(Settings(max_texts=2000), [engine])


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


def _post(client: TestClient, path: str, body: dict[str, Any], status: int = 200) -> dict[str, Any]:
    response = client.post(path, json=body)
    assert response.status_code == status, response.text
    return dict(response.json())


def _error(client: TestClient, path: str, **body: object) -> str:
    return str(_post(client, path, body, 422)["error"]["message"])


def _embeddings(client: TestClient, **body: object) -> list[dict[str, Any]]:
    answer = _post(client, "/v1/embed", body)
    assert answer["model"] == "echo-en-de"
    return list(answer["embeddings"])


def _generations(client: TestClient, **body: object) -> list[dict[str, Any]]:
    answer = _post(client, "/v1/generate", body)
    assert answer["model"] == "echo-en-de"
    return list(answer["generations"])


def _scores(client: TestClient, **body: object) -> list[dict[str, Any]]:
    return list(_post(client, "/v1/score", body)["scores"])


def test_embeddings_have_the_length_1_unless_the_request_says_otherwise(client: TestClient) -> None:
    first, second = _embeddings(client, text=TEXTS)
    assert first["embedding"] == second["embedding"] == [1, 0, 0, 0, 0, 0, 0, 0]
    [own] = _embeddings(client, text=TEXTS[0], normalize=False)
    assert own == {"embedding": [first["source_tokens"], *[0] * 7], "source_tokens": first["source_tokens"]}


def test_embeddings_have_the_pooling_and_the_prefix_of_the_request(client: TestClient, engine: _Engine) -> None:
    [short] = _embeddings(client, text="Tea.")
    [long] = _embeddings(client, text="Tea.", prefix="Where ", pooling="first")
    assert short["source_tokens"] < long["source_tokens"]
    assert [batch[0].params.pooling for batch in engine.batches] == ["mean", "first"]


def test_a_text_that_is_too_long_is_embedded_only_if_its_end_may_be_dropped(client: TestClient) -> None:
    assert f"at most {MAX_TOKENS} tokens" in _error(client, "/v1/embed", text=LONG)
    found = _embeddings(client, text=["Tea.", LONG], truncate=True)
    assert [each.get("truncated") for each in found] == [None, True]
    assert found[1]["source_tokens"] == MAX_TOKENS


def test_generated_texts_are_in_the_order_of_the_texts(client: TestClient, engine: _Engine) -> None:
    found = _generations(client, text=TEXTS)
    assert [each["text"] for each in found] == TEXTS
    assert set(found[0]) == {"text", "source_tokens", "target_tokens", "finish_reason"}
    assert [each["source_tokens"] for each in found] == [len(each.source) for each in engine.batches[0]]
    assert found[0]["finish_reason"] == "stop"


def test_scores_and_alternatives_of_generated_texts_are_returned_on_request(client: TestClient) -> None:
    [scored] = _generations(client, text="Tea.", return_scores=True)
    assert (scored["score"], scored["log_probability"]) == (-1, -1)
    assert "alternatives" not in scored
    [found] = _generations(client, text="Good morning.", num_hypotheses=2, beam_size=2)
    [other] = found["alternatives"]
    assert set(other) == {"text"}
    [found] = _generations(client, text="Good morning.", num_hypotheses=2, beam_size=2, return_scores=True)
    [other] = found["alternatives"]
    assert (other["score"], other["log_probability"]) == (-2, -2)


def test_a_task_has_its_prefix_and_its_options(client: TestClient, engine: _Engine) -> None:
    [found] = _generations(client, text="tea?", task="where")
    assert found["text"] == "Where tea?"
    assert engine.batches[-1][0].params.beam_size == 2
    [found] = _generations(client, text="tea?", prefix="Good ")
    assert found["text"] == "Good tea?"
    assert "`task` must be one that the model names: where" in _error(client, "/v1/generate", text="a", task="x")
    assert "cannot be combined" in _error(client, "/v1/generate", text="a", task="where", prefix="x")


def test_a_stream_of_generated_texts_ends_with_the_answer(client: TestClient) -> None:
    with client.stream("POST", "/v1/generate", json={"text": "Tea.", "stream": True}) as response:
        text = response.read().decode()
    assert response.headers["content-type"].startswith("text/event-stream")
    assert '"text":"Tea."' in text.rpartition("event:")[2]


@pytest.mark.parametrize("path", ["/v1/embed", "/v1/generate"])
def test_another_model_is_not_found_and_the_answer_is_not_cached_on_request(
    client: TestClient, engine: _Engine, path: str
) -> None:
    unknown = _post(client, path, {"text": "Tea.", "model": "x"}, 404)
    assert "no model has the name x" in unknown["error"]["message"]
    _post(client, path, {"text": "Tea.", "model": "echo-en-de"})
    assert client.post(path, json={"text": "Tea."}, headers={"Cache-Control": "no-cache"}).status_code == 200
    assert [batch[0].cacheable for batch in engine.batches] == [True, False]


def test_each_text_has_the_score_of_its_translation(client: TestClient, engine: _Engine) -> None:
    scores = _scores(client, text=TEXTS, translation=["Guten Morgen.", "Tee."])
    lengths = [len(request.params.forced_target) for request in engine.batches[0]]
    assert scores == [{"log_probability": -2, "score": -1, "target_tokens": length} for length in lengths]
    assert "for 2 texts" in _error(client, "/v1/score", text=TEXTS, translation="Tee.")


@pytest.mark.parametrize(
    ("path", "body", "num_characters"),
    [
        ("/v1/embed", {"text": TEXTS, "prefix": "Er"}, 17 + 4),
        ("/v1/generate", {"text": TEXTS, "prefix": "Er"}, 17 + 4),
        ("/v1/score", {"text": TEXTS, "translation": ["Er", "Er"]}, 17 + 4),
    ],
)
def test_characters_and_tokens_are_counted(
    app: FastAPI, client: TestClient, engine: _Engine, path: str, body: dict[str, object], num_characters: int
) -> None:
    _post(client, path, body)
    counted = app.state.server.activity.models["echo-en-de"]
    read = sum(len(request.source) for request in engine.batches[0])
    written = {"/v1/embed": 0, "/v1/generate": read}.get(path, 2 * len(engine.batches[0][0].params.forced_target))
    assert (counted.characters, counted.source_tokens, counted.target_tokens) == (num_characters, read, written)
