"""Options drawn at random, all together in one engine: what holds for every answer, whatever was asked for."""

import math
from dataclasses import replace

import numpy as np
import pytest

from server.interface.request import Completion, FinishReason, Request, Sampling, SentenceParams
from tests.fakes.engine import END, FakeEngine, Table, Tokens, random_table, request
from tests.fakes.sentence_params import sentence_params
from tests.server.engine.decoding.reference_options import is_forbidden, own_log_probability

VOCAB, NUM_REQUESTS = 12, 120


def _maybe(random: np.random.Generator, value: object, default: object, share: float = 0.3) -> object:
    return value if random.random() < share else default


def _tokens(random: np.random.Generator, length: int) -> Tokens:
    return tuple(random.integers(1, VOCAB, length).tolist())


def _any_params(random: np.random.Generator) -> SentenceParams:
    options: dict[str, object] = {
        "length_penalty": random.choice([0.0, 0.6, 1.0, 1.5]),
        "max_new_tokens": int(random.integers(2, 14)),
        "return_scores": True,
        "target_prefix": _maybe(random, _tokens(random, int(random.integers(1, 4))), ()),
        "suppress_tokens": _maybe(random, _tokens(random, 2), ()),
        "suppress_phrases": _maybe(random, (_tokens(random, 1), _tokens(random, 2), _tokens(random, 3)), ()),
        "no_repeat_ngram_size": _maybe(random, int(random.integers(1, 4)), 0),
        "repetition_penalty": _maybe(random, random.choice([0.7, 1.4]), 1.0),
        "min_new_tokens": _maybe(random, 1, 0),
        "max_repetitions": _maybe(random, 2, 32),
        "return_token_scores": random.random() < 0.3,
        "num_token_alternatives": _maybe(random, 3, 0),
        "return_attention": random.random() < 0.3,
    }
    match random.integers(6):
        case 0:
            sampling = Sampling(1.3, seed=int(random.integers(99)))
            filtered = replace(sampling, top_k=4, top_p=0.9, min_p=0.05)
            options["sampling"] = _maybe(random, filtered, sampling, share=0.5)
            options["num_hypotheses"] = int(random.integers(1, 5))
        case 1:
            options |= {"return_alternatives": True, "num_hypotheses": int(random.integers(1, 5))}
        case 2:
            pass
        case 3:
            options |= {"beam_size": 4, "num_beam_groups": int(random.choice([2, 4])), "diversity_penalty": 0.7}
        case 4:
            options |= {"beam_size": 3, "required_phrases": (_tokens(random, 2), _tokens(random, 1))}
        case _:
            options |= {"beam_size": int(random.integers(2, 5)), "patience": float(random.choice([0.5, 1.0, 2.0]))}
    if int(str(options.get("beam_size", 1))) > 1:
        options |= {
            "num_hypotheses": int(random.integers(1, 3)),
            "coverage_penalty": _maybe(random, 0.5, 0.0),
            "early_stopping": random.random() < 0.5,
        }
    return sentence_params(**options)


def _requests(seed: int) -> list[Request]:
    random = np.random.default_rng(seed)
    return [
        request((*_tokens(random, int(random.integers(1, 7))), END), _any_params(random)) for _ in range(NUM_REQUESTS)
    ]


def _assert_holds(table: Table, completion: Completion, forced_end: bool) -> None:
    params, source = completion.request.params, tuple(completion.request.source.tolist())
    assert completion.error is None or "no valid hypothesis" in str(completion.error), params
    assert len(completion.hypotheses) <= params.num_hypotheses
    prompt = params.target_prefix
    for hypothesis in completion.hypotheses:
        answer = tuple(hypothesis.token_ids)
        generated = answer[len(prompt) :]
        assert answer[: len(prompt)] == prompt
        assert END not in generated
        is_stop = hypothesis.finish_reason is FinishReason.STOP
        tokens = (*answer, END) if is_stop else answer
        assert len(tokens) - len(prompt) <= params.max_new_tokens
        own = own_log_probability(table, source, prompt, tokens[len(prompt) :])
        assert hypothesis.log_probability == pytest.approx(own, abs=1e-4), params
        assert math.isfinite(hypothesis.score)
        for place in range(len(generated)):
            assert not is_forbidden(generated[place], (*prompt, *generated[:place]), place, params), params
        if hypothesis.details is not None and params.options.return_token_scores:
            assert len(hypothesis.details.log_probabilities) == len(tokens)
        if hypothesis.details is not None and params.return_attention:
            assert hypothesis.details.attention is not None
            assert hypothesis.details.attention.shape == (len(answer), len(source))
        if is_stop:
            assert all(_has(answer, phrase) for phrase in params.required_phrases)
        elif hypothesis.finish_reason is FinishReason.LENGTH and completion.hypotheses[0] is hypothesis:
            is_full = len(generated) == params.max_new_tokens - forced_end
            assert is_full or params.required_phrases, params


def _has(tokens: Tokens, phrase: Tokens) -> bool:
    return any(tokens[place : place + len(phrase)] == phrase for place in range(len(tokens) - len(phrase) + 1))


@pytest.mark.parametrize("seed", range(3))
def test_with_any_options_every_answer_is_valid_and_the_same_alone_and_without_a_prefill(seed: int) -> None:
    table, forced_end = random_table(seed, VOCAB, end_bias=0.7), seed % 2 == 1
    together = FakeEngine(table, max_rows=24, forced_end=forced_end, prefills=True).run(_requests(seed))
    for completion, again in zip(together, _requests(seed), strict=True):
        _assert_holds(table, completion, forced_end)
        [alone] = FakeEngine(table, max_rows=8, forced_end=forced_end).run([again])
        assert str(alone.hypotheses) == str(completion.hypotheses)
