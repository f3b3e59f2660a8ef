"""`POST /v1/embed` with encoders of several families, against transformers and PyTorch."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from kvasir_client import Client
from tests.end_to_end.generating import Generating
from tests.model.families.family_checkpoints import SENTENCES

TEXTS = [text[: 8 + 5 * index] for index, text in enumerate(SENTENCES[:5])]


def _hidden(generating: Generating, model: str, text: str) -> NDArray[np.float32]:
    """Return the reference's hidden states [length, d_model] of a text."""
    with torch.no_grad():
        if model.startswith("own"):
            hidden: NDArray[np.float32] = generating.encoder(text).numpy()
            return hidden
        saved = generating.checkpoints[model]
        tokenizer: Any = saved.tokenizer
        inputs = tokenizer(text, return_tensors="pt")
        states = saved.reference.get_encoder()(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask)
        found: NDArray[np.float32] = states.last_hidden_state[0].numpy()
        return found


def _pooled(hidden: NDArray[np.float32], pooling: str) -> NDArray[np.float32]:
    pooled: NDArray[np.float32] = {"mean": hidden.mean(axis=0), "first": hidden[0], "eos": hidden[-1]}[pooling]
    return pooled


@pytest.mark.parametrize("model", ["bart", "t5", "own-float32"])
@pytest.mark.parametrize("pooling", ["mean", "first", "eos"])
def test_embeddings_are_pooled_hidden_states(model: str, pooling: str, generating: Generating) -> None:
    body = {"model": model, "text": TEXTS, "pooling": pooling, "normalize": False}
    answer = generating.client.post("/v1/embed", json=body)
    assert answer.status_code == 200, answer.text
    found = [each["embedding"] for each in answer.json()["embeddings"]]
    hidden = [_hidden(generating, model, text) for text in TEXTS]
    np.testing.assert_allclose(found, [_pooled(each, pooling) for each in hidden], atol=2e-5)
    assert [each["source_tokens"] for each in answer.json()["embeddings"]] == [len(each) for each in hidden]


@pytest.mark.parametrize(("model", "reference", "least"), [("own-int8", "own", 0.995), ("t5-float16", "t5", 0.9999)])
def test_a_rounded_encoder_points_in_almost_the_same_direction(
    model: str, reference: str, least: float, generating: Generating
) -> None:
    body = {"model": model, "text": TEXTS}
    found = np.array(
        [each["embedding"] for each in generating.client.post("/v1/embed", json=body).json()["embeddings"]]
    )
    expected = np.array([_hidden(generating, reference, text).mean(axis=0) for text in TEXTS])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    cosines = (found * expected).sum(axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() > least


@pytest.mark.parametrize("model", ["bart", "own-float32", "own-int8", "t5-float16"])
def test_an_embedding_does_not_depend_on_other_texts(model: str, generating: Generating) -> None:
    together = generating.client.post("/v1/embed", json={"model": model, "text": TEXTS}).json()["embeddings"]
    alone = [
        generating.client.post("/v1/embed", json={"model": model, "text": text}).json()["embeddings"][0]
        for text in TEXTS
    ]
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one["embedding"], other["embedding"], atol=1e-6)


def test_a_prefix_is_part_of_each_text_and_long_texts_are_cut_on_request(generating: Generating) -> None:
    body = {"model": "own-float32", "text": ["a cat", "x" * 80], "prefix": "query: ", "normalize": False}
    rejected = generating.client.post("/v1/embed", json=body)
    assert rejected.json()["error"]["code"] == "text_too_long"
    assert "text 1 must have at most 48 tokens with this model. Given: 89" in rejected.json()["error"]["message"]
    short, cut = generating.client.post("/v1/embed", json=body | {"truncate": True}).json()["embeddings"]
    for answer, text in ((short, "query: a cat"), (cut, "query: " + "x" * 39)):
        np.testing.assert_allclose(answer["embedding"], _hidden(generating, "own", text).mean(axis=0), atol=2e-5)
    assert (cut["truncated"], "truncated" in short) == (True, False)


def test_the_python_client_embeds(generating: Generating) -> None:
    with Client("http://testserver", transport=generating.client._transport) as client:
        one = client.embed(TEXTS[0], model="own-float32")
        several = client.embed(TEXTS, model="own-float32", pooling="mean", normalize=True)
        assert one.embedding == pytest.approx(several[0].embedding, abs=1e-6)
        assert len(several) == len(TEXTS)
