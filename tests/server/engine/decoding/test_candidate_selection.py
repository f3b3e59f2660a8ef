"""Candidates from whole rows of logits: processors, samples, and the selection of each search."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers.generation.logits_process import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from server.engine.decoding.candidate_selection import (
    CandidateSelection,
    MinNewTokens,
    NoRepeatedNgram,
    RepetitionPenalty,
    Selected,
    SuppressedPhrases,
    SuppressedTokens,
    draw,
    processors_for,
    token_probabilities,
)
from server.engine.model_runner import RequestRows
from server.interface.request import Completion, FinishReason, Request, Sampling, SentenceParams
from tests.fakes.engine import END, FakeEngine, random_table, request
from tests.fakes.sentence_params import changed, sentence_params

LOGITS = np.array([[0.0, 5.0, 3.0, 4.0, 1.0, 2.0], [6.0, 0.0, 1.0, 2.0, 3.0, 4.0]], np.float32)
NORMALIZER = np.array([8.0, 7.0], np.float32)


def _select(
    params: SentenceParams, num_candidates: int, logits: NDArray[np.float32] | None = LOGITS, length: int = 0
) -> Selected:
    graph = np.array([[1, 3], [0, 5]]), np.array([[-3.0, -4.0], [-1.0, -3.0]], np.float32)
    rows = RequestRows(*graph, NORMALIZER, logits, np.arange(2), None)
    return CandidateSelection(params, END).select(np.full((2, length), 9, np.int32), num_candidates, rows)


def test_a_greedy_row_without_a_possible_token_ends_and_a_beam_does_not() -> None:
    everything = tuple(range(6))
    greedy = _select(sentence_params(1, suppress_tokens=everything), 1)
    assert greedy.tokens.tolist() == [[END], [END]]
    assert greedy.log_probs.tolist() == greedy.search_log_probs.tolist() == [[-8.0], [-1.0]]
    beams = _select(sentence_params(2, suppress_tokens=everything), 2)
    assert np.isneginf(beams.search_log_probs).all()


def test_best_candidates_of_the_graph_are_not_searched_again() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 40)).astype(np.float32)
    places, normalizer = np.array([2, 0]), np.array([4.0, 3.0], np.float32)
    log_probs = logits[places] - normalizer[:, None]
    best = np.argsort(-log_probs, axis=1)[:, :8]
    best_log_probs = np.take_along_axis(log_probs, best, axis=1)
    selection = CandidateSelection(sentence_params(2, required_phrases=((7, 1), (int(best[0, 2]),))), END)
    assert selection.takes_graph_candidates
    by_graph, by_logits = (
        selection.select(
            np.empty((0, 0), np.int32),
            8 + 3,
            RequestRows(best[:, :found], best_log_probs[:, :found], normalizer, logits, places, None),
        )
        for found in (8, 7)
    )
    np.testing.assert_array_equal(by_graph.tokens, by_logits.tokens)
    np.testing.assert_array_equal(by_graph.search_log_probs, by_logits.search_log_probs)


def test_the_first_tokens_of_alternatives_are_the_best_of_the_first_row_and_not_the_end() -> None:
    params = sentence_params(return_alternatives=True, num_hypotheses=2)
    first = _select(params, 1, LOGITS[[1, 0]])
    assert first.tokens.tolist() == [[5], [4]]
    later = _select(params, 1, length=1)
    assert later.tokens.tolist() == [[1], [END]]
    prefixed = sentence_params(return_alternatives=True, num_hypotheses=2, target_prefix=(9,))
    assert _select(prefixed, 1, LOGITS[[1, 0]], length=1).tokens.tolist() == [[5], [4]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"beam_size": 4}, False),
        ({"return_scores": True}, False),
        ({"sampling": Sampling()}, True),
        ({"return_alternatives": True}, True),
        ({"required_phrases": ((1,),)}, True),
        ({"required_terms": (((1,),),)}, True),
        ({"num_token_alternatives": 1}, True),
        ({"suppress_tokens": (1,)}, True),
        ({"min_new_tokens": 2}, True),
    ],
)
def test_logits_are_needed_where_the_candidates_of_the_graph_are_not_enough(
    options: dict[str, object], expected: bool
) -> None:
    assert CandidateSelection.is_requested(sentence_params(**options)) is expected


def _ruled_out(scores: NDArray[np.float32]) -> list[list[int]]:
    return [np.flatnonzero(np.isneginf(row)).tolist() for row in scores]


def _applied(processor: object, *prefixes: list[int]) -> list[list[int]]:
    """Return the tokens that are ruled out behind each prefix."""
    scores = np.zeros((len(prefixes), 6), np.float32)
    processor.apply(scores, np.array(prefixes, np.int32).reshape(len(prefixes), -1))  # type: ignore[attr-defined]
    return _ruled_out(scores)


@pytest.mark.parametrize(
    ("size", "prefixes", "expected"),
    [
        (2, [[1, 2, 1], [1, 2, 3]], [[2], []]),
        (2, [[1, 1]], [[1]]),
        (2, [[1]], [[]]),
        (3, [[1, 2, 3, 1, 2], [1, 2, 3, 2, 1]], [[3], []]),
        (1, [[4, 2]], [[2, 4]]),
        (2, [[1, 2, 1, 3, 1]], [[2, 3]]),
    ],
)
def test_no_sequence_occurs_twice(size: int, prefixes: list[list[int]], expected: list[list[int]]) -> None:
    assert _applied(NoRepeatedNgram(size), *prefixes) == expected


@pytest.mark.parametrize(
    ("phrases", "prefixes", "expected"),
    [
        (((3,),), [[1], [2]], [[3], [3]]),
        (((1, 2), (2, 2)), [[4, 1], [4, 2]], [[2], [2]]),
        (((1, 2, 3),), [[2], [1]], [[], []]),
        (((1, 2, 3),), [[1, 2], [2, 1]], [[3], []]),
        (((1, 2, 3),), [[0, 1, 2]], [[3]]),
    ],
)
def test_the_last_token_of_a_phrase_does_not_follow_the_others(
    phrases: tuple[tuple[int, ...], ...], prefixes: list[list[int]], expected: list[list[int]]
) -> None:
    assert _applied(SuppressedPhrases(phrases), *prefixes) == expected


def test_processors_are_those_of_the_options_in_the_order_of_hugging_face() -> None:
    assert processors_for(sentence_params(), END) == []
    params = sentence_params(
        repetition_penalty=1.5, no_repeat_ngram_size=2, suppress_phrases=((1, 2),), min_new_tokens=3,
        suppress_tokens=(4,), target_prefix=(1, 2),
    )  # fmt: skip
    assert processors_for(params, END) == [
        RepetitionPenalty(np.float32(1.5)),
        NoRepeatedNgram(2),
        SuppressedPhrases(((1, 2),)),
        MinNewTokens(5, END),  # with the prefix
        SuppressedTokens([4]),
    ]


SETTINGS = [
    Sampling(),
    Sampling(temperature=0.3),
    Sampling(temperature=2.0, top_k=5),
    Sampling(top_p=0.8),
    Sampling(temperature=0.7, top_k=12, top_p=0.9),
    Sampling(min_p=0.1),
    Sampling(temperature=1.5, top_k=20, top_p=0.95, min_p=0.05),
    Sampling(top_k=1),
    Sampling(top_p=0.01),
]
PLAIN = sentence_params(max_new_tokens=12, sampling=Sampling(), return_scores=True)
TABLE = random_table(21, 9, end_bias=0.2)


@pytest.mark.parametrize("sampling", SETTINGS, ids=str)
def test_probabilities_are_those_of_hugging_face(sampling: Sampling) -> None:
    random = np.random.default_rng(1)
    for size in (3, 40, 1000):
        logits = random.normal(scale=3.0, size=size).astype(np.float32)
        warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
        if sampling.top_k:
            warpers.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1:
            warpers.append(TopPLogitsWarper(sampling.top_p))
        if sampling.min_p:
            warpers.append(MinPLogitsWarper(sampling.min_p))
        warped = warpers(torch.zeros(1, 1, dtype=torch.long), torch.from_numpy(logits)[None].double())
        expected = torch.softmax(warped, dim=-1)[0].numpy()
        np.testing.assert_allclose(token_probabilities(logits, sampling), expected, atol=1e-6)


@pytest.mark.parametrize("sampling", SETTINGS[:7], ids=str)
def test_tokens_are_drawn_as_often_as_they_are_likely(sampling: Sampling) -> None:
    logits = np.random.default_rng(2).normal(scale=1.5, size=12).astype(np.float32)
    expected, num_draws = token_probabilities(logits, sampling), 2000
    drawn = Counter(draw(logits, replace(sampling, seed=seed), 0, 3) for seed in range(num_draws))
    found = np.array([drawn[token] for token in range(12)]) / num_draws
    assert (found[expected == 0] == 0).all()
    np.testing.assert_array_less(np.abs(found - expected), 4.5 * np.sqrt(expected * (1 - expected) / num_draws) + 1e-9)


def test_seed_sample_and_position_each_change_the_draw() -> None:
    logits = np.zeros(1000, np.float32)
    base = draw(logits, Sampling(seed=1), 0, 0)
    others = [
        draw(logits, Sampling(seed=2), 0, 0),
        draw(logits, Sampling(seed=1), 1, 0),
        draw(logits, Sampling(seed=1), 0, 1),
    ]
    assert len({base, *others}) == 4
    assert draw(logits, Sampling(seed=1), 0, 0) == base
    assert draw(logits, Sampling(seed=2**63 - 1), 7, 500) < 1000


def _requests() -> list[Request]:
    return [
        request(
            (source, 3, END),
            changed(
                PLAIN,
                num_hypotheses=number % 4 + 1,
                max_new_tokens=3 + number % 9,
                sampling=replace(SETTINGS[number % 7], seed=number),
                repetition_penalty=1.0 + number % 2,
            ),
        )
        for number, source in enumerate([1, 2, 3, 4, 5, 6, 7, 8] * 3)
    ]


def _plain() -> list[Request]:
    return [request((5, 2, END), sentence_params(beam_size, max_new_tokens=9)) for beam_size in (1, 2, 3, 1)] * 2


def test_the_same_seed_gives_the_same_samples_alone_and_batched() -> None:
    alone = [FakeEngine(TABLE).run([each])[0].hypotheses for each in _requests()]
    engine, requests = FakeEngine(TABLE, max_rows=13), _requests()
    others = [request(each.source.tolist(), each.params) for each in _plain()]
    together = engine.run([*requests[:10], *others, *requests[10:]])
    assert [done.hypotheses for done in together if done.request in requests] == alone


def test_samples_come_best_first_with_the_log_probability_of_the_model() -> None:
    for length_penalty in (0.0, 1.0):
        params = changed(
            PLAIN, num_hypotheses=6, length_penalty=length_penalty, sampling=Sampling(2.0, top_k=4, seed=5)
        )
        [done] = FakeEngine(TABLE).run([request((5, 3, END), params)])
        scores = [each.score for each in done.hypotheses]
        assert scores == sorted(scores, reverse=True)
        for each in done.hypotheses:
            _assert_scored_by_the_table(done, each.token_ids, each.log_probability, each.finish_reason)


def _assert_scored_by_the_table(
    done: Completion, token_ids: list[int], log_probability: float, reason: FinishReason
) -> None:
    tokens = (*token_ids, END) if reason is FinishReason.STOP else tuple(token_ids)
    source = tuple(done.request.source.tolist())
    own = math.fsum(float(TABLE(source, tokens[:place])[token]) for place, token in enumerate(tokens))
    assert log_probability == pytest.approx(own, abs=1e-5)
