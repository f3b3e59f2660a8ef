"""The whole engine over ONNX Runtime: what an answer may depend on, and what it may not."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from bundle.loading import load_bundle
from bundle.tensors import Precision
from export.verification.verify import verify_bundle
from model.checkpoints.weights import build_model
from model.families.own import read_own_model
from model.transformer import Transformer
from server.interface.request import Completion, Request, SentenceParams
from server.operations.defaults import DEFAULT_MODEL
from server.text.tokenizers.registry import open_tokenizer
from tests.end_to_end.exported import MAX_SOURCE_TOKENS, Exported, driven_engine, write_own_model
from tests.fakes.engine import DrivenEngine, request
from tests.fakes.sentence_params import changed, sentence_params
from tests.kernels.instruction_sets import INSTRUCTION_SETS
from tests.model.families.rounded_models import export_graphs

SENTENCES = Path(__file__).resolve().parents[2] / "loadtest" / "workload" / "sentences.txt"
LIMIT = 40


@pytest.fixture(scope="module")
def float32(exported: Callable[[Precision], Exported]) -> Exported:
    return exported("float32")


def _mixed_params(number: int) -> SentenceParams:
    beam_size = number % 5 + 1
    return sentence_params(
        beam_size,
        length_penalty=(1.0, 0.0, 0.6)[number % 3],
        max_new_tokens=(LIMIT, 3, 12, 24)[number % 4],
        num_hypotheses=beam_size,
        early_stopping=number % 7 < 3,
        return_scores=number % 2 == 0,
    )


def _mixed(num_requests: int) -> list[Request]:
    """Requests of every length and beam size."""
    drawn = np.random.default_rng(5)
    requests = []
    for number in range(num_requests):
        length = int(drawn.integers(0, MAX_SOURCE_TOKENS))
        requests.append(request([*drawn.integers(1, 60, length).tolist(), 0], _mixed_params(number)))
    return requests


def _again(requests: Sequence[Request]) -> list[Request]:
    return [request(each.source.tolist(), each.params) for each in requests]


def _tokens(completions: Sequence[Completion]) -> list[list[list[int]]]:
    assert all(done.error is None for done in completions)
    return [[hypothesis.token_ids for hypothesis in done.hypotheses] for done in completions]


def _scores(completions: Sequence[Completion]) -> list[float]:
    return [hypothesis.score for done in completions for hypothesis in done.hypotheses]


def _assert_alone_equals_in_company(engine: DrivenEngine, requests: Sequence[Request]) -> list[list[list[int]]]:
    alone = [engine.run([each])[0] for each in _again(requests)]
    order = list(range(len(requests)))
    random.Random(1).shuffle(order)
    mixed = _again(requests)
    together = engine.run([mixed[place] for place in order])
    alone = [alone[place] for place in order]
    assert _tokens(together) == _tokens(alone)
    np.testing.assert_allclose(_scores(together), _scores(alone), atol=1e-5)
    return _tokens(together)


def _num_lengths(answers: Sequence[Sequence[Sequence[int]]]) -> int:
    return len({len(hypotheses[0]) for hypotheses in answers})


def _drawn_options(seed: int) -> dict[str, object]:
    """Return sizes that nothing rounds: any number of heads, wide and narrow, over any width of the model."""
    drawn = np.random.default_rng(seed)
    decoder = ("self_attention", "self_attention", "ssru")[seed % 3]
    return {
        "num_heads": int(drawn.integers(1, 17)),
        # One head is a shape of its own: some arrays are contiguous in more than one order.
        "decoder_num_heads": 1 if seed % 2 == 0 else int(drawn.integers(1, 17)),
        "head_dim": int(drawn.integers(1, 65)),
        "d_model": int(drawn.integers(8, 80)) * 2 + (decoder != "ssru"),
        "feed_forward_width": int(drawn.integers(5, 120)),
        "num_encoder_layers": int(drawn.integers(1, 3)),
        "num_decoder_layers": int(drawn.integers(1, 3)),
        "activation": ("relu", "silu", "gelu")[seed % 3 - 1],
        "norm_placement": ("post", "pre")[seed // 2 % 2],
        "positions": "sinusoidal" if decoder == "ssru" else "learned",
        "decoder": decoder,
    }


@pytest.mark.parametrize("seed", [1, 2])  # self-attention with post-norm, a recurrent decoder with pre-norm
def test_models_of_any_shape_give_the_same_answers_alone_and_in_company(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = _drawn_options(seed)
    folder = write_own_model(tmp_path / "model", options)
    checkpoint = read_own_model(folder / "model.json", folder / "model.safetensors")
    bundle = export_graphs(checkpoint, tmp_path / "bundle", "int8")
    reports: list[str] = []
    verify_bundle(bundle, build_model(checkpoint), reports.append)
    assert all(report.startswith("warning: rounding to int8 changes ") for report in reports)
    answers = []
    for kernels in INSTRUCTION_SETS:
        monkeypatch.setenv("KVASIR_KERNELS", kernels)
        answers.append(_assert_alone_equals_in_company(driven_engine(bundle), _mixed(24)))
    assert all(answer == answers[0] for answer in answers), options
    assert _num_lengths(answers[0]) > 2


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_mixed_requests_get_the_same_answers_alone_and_in_company(
    exported: Callable[[Precision], Exported], precision: Precision
) -> None:
    answers = _assert_alone_equals_in_company(exported(precision).engine(), _mixed(60))
    assert _num_lengths(answers) > 5


def test_the_default_model_gives_the_same_answers_alone_and_in_company() -> None:
    bundle = load_bundle(DEFAULT_MODEL)
    tokenizer = open_tokenizer(bundle)
    sentences = SENTENCES.read_text(encoding="utf-8").splitlines()[:24]
    sources = [tokenizer.encode(sentence).tolist() for sentence in sentences]
    requests = [request(source, _mixed_params(number)) for number, source in enumerate(sources)]
    assert _num_lengths(_assert_alone_equals_in_company(driven_engine(bundle), requests)) > 5


def _teacher_forced(model: Transformer, source: Sequence[int], target: Sequence[int]) -> torch.Tensor:
    """Log-probabilities [target_len + 1, vocab] of what follows the start token and each of `target`, no cache used."""
    inputs = torch.tensor([[model.config.decoder_start_token_id, *target]])
    tokens = torch.tensor([list(source)])
    with torch.no_grad():
        return torch.log_softmax(model(tokens, torch.ones_like(tokens, dtype=torch.bool), inputs)[0], dim=-1)


def test_the_score_of_a_hypothesis_is_that_of_teacher_forcing_it(float32: Exported) -> None:
    model, end = float32.model, float32.bundle.config.special_tokens.end_of_sequence
    requests = [
        request(each.source.tolist(), changed(each.params, return_scores=True, max_repetitions=0))
        for each in _mixed(30)
    ]
    for done in float32.engine().run(requests):
        params = done.request.params
        assert len(done.hypotheses) == params.num_hypotheses
        for hypothesis in done.hypotheses:
            targets = [*hypothesis.token_ids, end]
            log_probs = _teacher_forced(model, done.request.source.tolist(), hypothesis.token_ids)
            # The end costs nothing where the limit forces it.
            num_charged = min(len(targets), params.max_new_tokens - 1)
            gained = float(log_probs[range(num_charged), targets[:num_charged]].sum())
            assert hypothesis.log_probability == pytest.approx(gained, abs=1e-4)
            assert hypothesis.score == pytest.approx(gained / len(targets) ** params.options.length_penalty, abs=1e-4)


def test_greedy_with_the_cache_equals_greedy_without_it(float32: Exported) -> None:
    params = sentence_params(max_new_tokens=LIMIT, max_repetitions=0)
    model, special = float32.model, float32.bundle.config.special_tokens
    requests = [request(each.source.tolist(), params) for each in _mixed(30)]
    for done in float32.engine().run(requests):
        tokens = done.hypotheses[0].token_ids
        log_probs = _teacher_forced(model, done.request.source.tolist(), tokens)
        log_probs[:, list(special.suppressed)] = -torch.inf
        # Every token is the best one after those before it; only the last one that the limit allows is the end anyhow.
        best = log_probs.argmax(dim=-1).tolist()
        assert best[: LIMIT - 1] == [*tokens, special.end_of_sequence][: LIMIT - 1]
