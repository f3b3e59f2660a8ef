import itertools
import math

import pytest

from server.engine.decoding.greedy_search import GreedySearch
from server.engine.decoding.search import SearchLimits
from server.interface.request import FinishReason, Hypothesis, SentenceParams
from tests.fakes.engine import END, Table, random_table, spelled_out
from tests.fakes.reference_search import greedy
from tests.fakes.search_driver import drive
from tests.fakes.sentence_params import changed, sentence_params

A, B = 1, 2
# The most likely first token does not begin the most likely sequence: A END has 0.3, B END has 0.36.
TRAP = spelled_out({(): [0.1, 0.5, 0.4], (A,): [0.6, 0.2, 0.2], (B,): [0.9, 0.05, 0.05]})


def _search(max_requests: int = 4, forced_end: bool = False) -> GreedySearch:
    return GreedySearch(SearchLimits(max_requests, max_new_tokens=8, end_token=END, forced_end=forced_end))


def _decode(table: Table, params: SentenceParams, forced_end: bool = False) -> Hypothesis:
    [[hypothesis]] = drive(_search(forced_end=forced_end), [table], [changed(params, return_scores=True)])
    return hypothesis


@pytest.mark.parametrize("length_penalty", [-1.0, 0.0, 0.6, 1.0, 2.0])
def test_the_greedy_score_counts_the_end_of_sequence_token(length_penalty: float) -> None:
    hypothesis = _decode(TRAP, sentence_params(max_new_tokens=8, length_penalty=length_penalty))
    assert hypothesis.score == pytest.approx(math.log(0.3) / 2**length_penalty, abs=1e-6)


def test_a_forced_end_costs_nothing_and_counts_as_the_limit() -> None:
    hypothesis = _decode(TRAP, sentence_params(max_new_tokens=2), forced_end=True)
    assert hypothesis.token_ids == [A]
    assert hypothesis.log_probability == pytest.approx(math.log(0.5), abs=1e-6)
    assert hypothesis.score == pytest.approx(math.log(0.5) / 2, abs=1e-6)
    assert hypothesis.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("forced_end", [False, True])
def test_greedy_follows_its_rule_on_random_tables_alone_and_batched(forced_end: bool) -> None:
    tables = [random_table(seed, vocab=5, end_bias=-0.5) for seed in range(40)]
    choices = itertools.product(range(1, 9), [-0.5, 0.0, 0.6, 1.0, 2.0])
    params = [
        sentence_params(max_new_tokens=limit, length_penalty=penalty, return_scores=True) for limit, penalty in choices
    ]
    assert len(params) == len(tables)
    together = drive(_search(len(tables), forced_end), tables, params)
    for table, each, [hypothesis] in zip(tables, params, together, strict=True):
        tokens, log_probability, score = greedy(table, each, forced_end)
        assert tuple(hypothesis.token_ids) == tokens
        assert hypothesis.log_probability == pytest.approx(log_probability, abs=1e-5)
        assert hypothesis.score == pytest.approx(score, rel=1e-5, abs=1e-5)
        assert [hypothesis] == drive(_search(forced_end=forced_end), [table], [each])[0]


def test_only_requests_that_return_scores_have_one_whatever_their_batch() -> None:
    search = _search()
    assert not search.needs_scores
    asked, not_asked = (sentence_params(max_new_tokens=8, return_scores=wanted) for wanted in (True, False))
    [[with_score], [without]] = drive(search, [TRAP, TRAP], [asked, not_asked])
    assert with_score.token_ids == without.token_ids == [A]
    assert math.isfinite(with_score.score)
    assert math.isnan(without.score)
    assert math.isnan(without.log_probability)
