"""Requests with every option over ONNX Runtime: the same bits alone and in company, and the numbers of the model."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bundle.tensors import Precision
from model.layers import CrossAttentionLayer
from server.interface.request import Completion, FinishReason, Request, Sampling, SentenceParams
from tests.end_to_end.exported import MAX_SOURCE_TOKENS, Exported
from tests.fakes.engine import request
from tests.fakes.sentence_params import changed, sentence_params

END, VOCAB, NUM_REQUESTS = 0, 60, 39
PLAIN = sentence_params(max_new_tokens=20, return_scores=True)
DETAILS = sentence_params(
    max_new_tokens=20, return_scores=True, return_token_scores=True, num_token_alternatives=2, return_attention=True
)
WITHOUT_BEAMS = [
    PLAIN,
    replace(PLAIN, sampling=Sampling(seed=5), num_hypotheses=3),
    replace(DETAILS, sampling=Sampling(1.4, top_k=20, top_p=0.95, min_p=0.01, seed=9), num_hypotheses=2),
    changed(PLAIN, return_alternatives=True, num_hypotheses=4, target_prefix=(7, 9)),
    replace(DETAILS, forced_target=(11, 5, 5, 31, END)),
    changed(DETAILS, repetition_penalty=1.5, no_repeat_ngram_size=2),
    changed(DETAILS, target_prefix=(4, 8, 8), min_new_tokens=6, alignment_layer=0, alignment_heads=(1, 3)),
]
WITH_BEAMS = [
    PLAIN,
    changed(DETAILS, coverage_penalty=0.5),
    changed(PLAIN, num_beam_groups=3, diversity_penalty=0.8),
    replace(PLAIN, required_phrases=((3, 44), (17,))),
    changed(DETAILS, suppress_tokens=(5, 6, 7), suppress_phrases=((8, 9), (10,)), target_prefix=(13,)),
    changed(PLAIN, patience=2.0, early_stopping=True, repetition_penalty=1.3),
]


@pytest.fixture(params=["exported", "exported_recurrent"])
def either(request: pytest.FixtureRequest) -> Callable[[Precision], Exported]:
    """Bundles of a model with self-attention or a recurrent unit in its decoder."""
    export: Callable[[Precision], Exported] = request.getfixturevalue(request.param)
    return export


def _mixed() -> list[Request]:
    drawn = np.random.default_rng(5)
    choices = [*WITHOUT_BEAMS, *(replace(each, beam_size=3, num_hypotheses=3) for each in WITH_BEAMS)]
    sources = [drawn.integers(1, VOCAB, drawn.integers(0, MAX_SOURCE_TOKENS)).tolist() for _ in range(NUM_REQUESTS)]
    return [request([*source, END], choices[number % len(choices)]) for number, source in enumerate(sources)]


def _again(requests: Sequence[Request]) -> list[Request]:
    return [request(each.source.tolist(), each.params) for each in requests]


def _all_bits(completion: Completion) -> list[object]:
    """Everything that is answered, numbers as they are."""
    assert completion.error is None
    return [
        (
            each.token_ids,
            each.log_probability,
            each.score,
            each.finish_reason,
            each.details
            and (
                each.details.log_probabilities,
                each.details.alternatives,
                each.details.attention is not None and each.details.attention.tobytes(),
            ),
        )
        for each in completion.hypotheses
    ]


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_requests_with_every_option_get_the_same_bits_alone_and_in_company(
    either: Callable[[Precision], Exported], precision: Precision
) -> None:
    engine = either(precision).engine()
    alone = [_all_bits(engine.run([each])[0]) for each in _again(_mixed())]
    order = list(range(NUM_REQUESTS))
    random.Random(1).shuffle(order)
    mixed = _again(_mixed())
    together = engine.run([mixed[place] for place in order])
    assert [_all_bits(completion) for completion in together] == [alone[place] for place in order]


def test_log_probabilities_and_attention_are_those_of_the_model_teacher_forced(
    either: Callable[[Precision], Exported],
) -> None:
    bundle = either("float32")
    for completion in bundle.engine().run(_mixed()):
        params = completion.request.params
        source = torch.from_numpy(completion.request.source).long()[None]
        for hypothesis in completion.hypotheses:
            tokens = list(hypothesis.token_ids)
            targets = [*tokens, END] if hypothesis.finish_reason is FinishReason.STOP else tokens
            log_probs, attention = _teacher_forced(bundle, source, targets, params)
            gained = log_probs[range(len(targets)), targets]
            own = gained[len(params.target_prefix) :].sum()
            assert hypothesis.log_probability == pytest.approx(float(own), abs=2e-4), params
            if (details := hypothesis.details) is not None:
                np.testing.assert_allclose(details.log_probabilities, gained, atol=1e-4)
                assert details.attention is not None
                np.testing.assert_allclose(details.attention, attention[: len(tokens)], atol=1e-5)
                for row, best in zip(log_probs, details.alternatives, strict=True):
                    assert [token for token, _ in best] == np.argsort(-row[:VOCAB])[:2].tolist()


def _teacher_forced(
    bundle: Exported, source: torch.Tensor, targets: list[int], params: SentenceParams
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Log-probabilities [target_len, vocab] and attention [target_len, source_len] of the layer and heads asked for."""
    model = bundle.model
    layer = model.decoder.layers[params.alignment_layer]
    assert isinstance(layer, CrossAttentionLayer)
    seen: list[torch.Tensor] = []
    hook = layer.cross_attention.dropout.register_forward_hook(lambda _, __, output: seen.append(output))
    try:
        inputs = torch.tensor([[model.config.decoder_start_token_id, *targets[:-1]]])
        with torch.no_grad():
            logits = model(source, torch.ones_like(source, dtype=torch.bool), inputs)[0]
    finally:
        hook.remove()
    heads = list(params.options.alignment_heads) or slice(None)
    return torch.log_softmax(logits, dim=-1).numpy(), seen[0][0, heads].mean(dim=0).numpy()
