"""Decoding options over HTTP: the values that reach the engine, and the errors of invalid ones."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from bundle.loading import Bundle
from server.http.app import create_app
from server.interface.request import FinishReason, Sampling, SentenceParams
from server.operations.settings import Settings
from server.text.tokenizers.registry import open_tokenizer
from tests.fakes.echo import EchoGenerator


@pytest.fixture
def client(echo: EchoGenerator) -> Iterator[TestClient]:
    with TestClient(create_app(Settings(), [echo])) as client:
        yield client


def _params(client: TestClient, echo: EchoGenerator, **body: object) -> SentenceParams:
    answer = client.post("/v1/translate", json={"text": "Tea."} | body)
    assert answer.status_code == 200, answer.text
    return echo.batches[-1][0].params


def test_numbers_reach_the_engine(client: TestClient, echo: EchoGenerator) -> None:
    numbers = {
        "coverage_penalty": 0.5,
        "patience": 2.0,
        "num_beam_groups": 2,
        "diversity_penalty": 1.5,
        "no_repeat_ngram_size": 3,
        "repetition_penalty": 1.2,
        "min_new_tokens": 4,
        "max_repetitions": 7,
    }
    params = _params(client, echo, beam_size=4, suppress_tokens=[5, 7], **numbers)
    assert {**params.options.changed(), "min_new_tokens": params.min_new_tokens} == {
        **numbers,
        "suppress_tokens": (5, 7),
    }


def test_a_wrong_switch_is_rejected_with_its_values(client: TestClient) -> None:
    values = {
        "if_already_target": "'keep' or 'translate'",
        "on_low_quality": "'flag' or 'keep_source'",
    }
    for name, allowed in values.items():
        answer = client.post("/v1/translate", json={"text": "Tea.", name: "maybe"})
        assert answer.status_code == 422
        assert name in answer.text
        assert allowed in answer.text


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
        ({"top_p": 1.5}, ["top_p", "at most 1"]),
        ({"seed": 2**53}, ["seed", str(2**53 - 1)]),
        ({"patience": 0}, ["patience", "0.1"]),
        ({"repetition_penalty": 11}, ["repetition_penalty", "10"]),
        ({"min_new_tokens": -1}, ["min_new_tokens", "0"]),
        ({"num_token_alternatives": 11}, ["num_token_alternatives", "10"]),
        ({"suppress_tokens": [100_000]}, ["suppress_tokens", "100000", "from 0 to"]),
        ({"suppress_tokens": ["Tee"]}, ["suppress_tokens"]),
        ({"suppress_phrases": ["  "]}, ["suppress_phrases", "other than white space"]),
        ({"suppress_phrases": ["x"] * 65}, ["suppress_phrases", "64"]),
        ({"suppress_phrases": ["日本"]}, ["suppress_phrases", "日本", "cannot write"]),
        ({"target_prefix": "日本"}, ["target_prefix", "日本", "cannot write"]),
        ({"target_prefix": "Tee " * 60}, ["target_prefix", "tokens", "31"]),
        ({"target_prefix": ["Tee", "Tee"]}, ["target_prefix", "2 entries", "1 texts"]),
        ({"alignment_layer": 1}, ["`alignment_layer` must be from -1 to 0", "Given: 1"]),
        ({"alignment_heads": [0, 1]}, ["`alignment_heads` must be from 0 to 0", "Given: 1"]),
        ({"temperature": 1, "beam_size": 4}, ["temperature", "beam_size of 4"]),
        ({"seed": 1, "coverage_penalty": 1}, ["seed", "coverage_penalty"]),
        ({"top_k": 2, "early_stopping": True}, ["top_k", "early_stopping"]),
        ({"top_k": 2, "return_alternatives": True}, ["top_k", "return_alternatives"]),
        ({"return_alternatives": True, "beam_size": 2}, ["return_alternatives", "beam_size of 2"]),
        ({"return_alternatives": True, "num_beam_groups": 2}, ["return_alternatives", "num_beam_groups"]),
        ({"top_p": 0.9, "num_hypotheses": 8}, []),
        ({"beam_size": 1, "coverage_penalty": 1}, ["coverage_penalty", "beam_size of 2 or more"]),
        ({"beam_size": 1, "required_phrases": ["Tee"]}, ["required_phrases", "beam_size of 2 or more"]),
        ({"beam_size": 5, "num_beam_groups": 2}, ["num_beam_groups is 2", "beam_size is 5"]),
        ({"diversity_penalty": 1}, ["`diversity_penalty` is 1", "num_beam_groups"]),
        ({"beam_size": 4, "num_beam_groups": 2, "required_phrases": ["Tee"]}, ["required_phrases", "num_beam_groups"]),
        ({"required_phrases": ["Tee"], "suppress_phrases": ["Tee"]}, ["required_phrases", "suppress_phrases", "Tee"]),
        ({"required_phrases": ["ein Glas Wasser"], "max_new_tokens": 3}, ["`required_phrases` may have 2 tokens"]),
        ({"required_phrases": ["Tee"] * 9}, ["required_phrases", "8"]),
        ({"min_new_tokens": 9, "max_new_tokens": 9}, ["min_new_tokens is 9", "max_new_tokens is 9"]),
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
    if not words:
        assert answer.status_code == 200
        return
    assert answer.status_code == 422, answer.text
    message = answer.json()["error"]["message"]
    assert all(word in message for word in words), message
    assert echo.batches == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text": ["Tea.", "Tea."], "translation": "Tee."}, ["one entry for each text", "Given: 1 for 2 texts"]),
        ({"text": "Tea.", "translation": "Tee. " * 20}, ["translation 0", "at most 32 tokens with this model"]),
        ({"text": "Tea. " * 20, "translation": "Tee."}, ["text 0", "at most 32 tokens with this model"]),
        ({"text": "Tea.", "translation": "Tee.", "beam_size": 4}, ["beam_size", "not a field"]),
        ({"text": "Tea."}, ["`translation` is required"]),
        ({"text": "Tea.", "translation": "Tee.", "alignment_layer": 3}, ["`alignment_layer` must be", "Given: 3"]),
    ],
    ids=str,
)
def test_an_invalid_score_request_is_rejected(
    client: TestClient, echo: EchoGenerator, body: dict[str, object], words: list[str]
) -> None:
    answer = client.post("/v1/score", json=body)
    assert answer.status_code == 422, answer.text
    message = answer.json()["error"]["message"]
    assert all(word in message for word in words), message
    assert echo.batches == []


def test_no_texts_have_no_scores(client: TestClient) -> None:
    assert client.post("/v1/score", json={"text": [], "translation": []}).json()["scores"] == []
