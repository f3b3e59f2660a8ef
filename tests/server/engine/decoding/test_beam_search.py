import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from server.engine.decoding.beam_search import BeamSearch
from server.engine.decoding.search import SearchLimits
from server.interface.request import FinishReason, Hypothesis, SentenceParams
from tests.fakes.engine import END, Table, Tokens, random_table, spelled_out, table_with_ties
from tests.fakes.reference_search import Scored, beam, everything
from tests.fakes.search_driver import drive
from tests.fakes.sentence_params import sentence_params

A, B = 1, 2
# The most likely first token does not begin the most likely sequence: A END has 0.3, B END has 0.36.
TRAP = spelled_out({(): [0.1, 0.5, 0.4], (A,): [0.6, 0.2, 0.2], (B,): [0.9, 0.05, 0.05]})
PENALTIES = (-1.0, 0.0, 0.6, 1.0, 2.0)


def _search(beam_size: int, max_requests: int = 1, forced_end: bool = False) -> BeamSearch:
    return BeamSearch(beam_size, SearchLimits(max_requests, max_new_tokens=9, end_token=END, forced_end=forced_end))


def _decode(table: Table, params: SentenceParams, forced_end: bool = False) -> list[Hypothesis]:
    [hypotheses] = drive(_search(params.beam_size, forced_end=forced_end), [table], [params])
    return hypotheses


def _assert_equal(hypotheses: Sequence[Hypothesis], expected: Sequence[Scored]) -> None:
    assert [tuple(hypothesis.token_ids) for hypothesis in hypotheses] == [tokens for tokens, _, _ in expected]
    ours = [(hypothesis.log_probability, hypothesis.score) for hypothesis in hypotheses]
    np.testing.assert_allclose(ours, [scores for _, *scores in expected], rtol=2e-5, atol=2e-5)


def test_two_beams_find_the_sequence_that_greedy_misses() -> None:
    [best] = _decode(TRAP, sentence_params(beam_size=2, max_new_tokens=5))
    assert best.token_ids == [B]
    assert best.log_probability == pytest.approx(math.log(0.4 * 0.9), abs=1e-6)
    assert best.score == pytest.approx(math.log(0.36) / 2, abs=1e-6)
    assert best.finish_reason is FinishReason.STOP


def test_early_stopping_keeps_the_hypotheses_that_complete_first() -> None:
    table = spelled_out({(): [0.5, 0.5, 0.0], (A,): [0.3, 0.7, 0.0], (A, A): [1.0, 0.0, 0.0]})

    def best(early_stopping: bool) -> Hypothesis:
        params = sentence_params(
            beam_size=2, length_penalty=2.0, max_new_tokens=5, early_stopping=early_stopping, num_hypotheses=2
        )
        return _decode(table, params)[0]

    assert best(early_stopping=True).token_ids == [A]
    assert best(early_stopping=False).token_ids == [A, A]


def test_a_forced_end_is_the_only_continuation_at_the_limit() -> None:
    params = sentence_params(beam_size=2, num_hypotheses=2, length_penalty=0.0, max_new_tokens=2)
    hypotheses = _decode(TRAP, params, forced_end=True)
    assert [hypothesis.token_ids for hypothesis in hypotheses] == [[A], [B]]
    scores = [hypothesis.score for hypothesis in hypotheses]
    assert scores == pytest.approx([math.log(0.5), math.log(0.4)], abs=1e-6)
    assert {hypothesis.finish_reason for hypothesis in hypotheses} == {FinishReason.LENGTH}


@pytest.mark.parametrize(("vocab", "limit"), [(3, 3), (4, 2), (5, 2)])
@pytest.mark.parametrize("length_penalty", PENALTIES)
def test_as_many_beams_as_there_are_prefixes_find_the_best_of_everything(
    vocab: int, limit: int, length_penalty: float
) -> None:
    params = sentence_params(
        beam_size=8, num_hypotheses=8, max_new_tokens=limit, length_penalty=length_penalty, early_stopping=False
    )
    for seed in range(30):
        table = random_table(seed, vocab)
        _assert_equal(_decode(table, params), everything(table, vocab, params)[:8])


@pytest.mark.parametrize("beam_size", range(2, 9))
@pytest.mark.parametrize("forced_end", [False, True])
@pytest.mark.parametrize("vocab", [3, 5, 20])
def test_beam_search_follows_its_rule_on_random_tables_alone_and_batched(
    beam_size: int, forced_end: bool, vocab: int
) -> None:
    choices = itertools.product(PENALTIES, [False, True], [1, 4, 9])
    params = [sentence_params(beam_size, penalty, limit, beam_size, early) for penalty, early, limit in choices]
    tables = [random_table(seed, vocab, end_bias=1.0) for seed in range(len(params))]
    together = drive(_search(beam_size, len(params), forced_end), tables, params)
    for table, each, hypotheses in zip(tables, params, together, strict=True):
        _assert_equal(hypotheses, beam(table, each, forced_end))
        assert _decode(table, each, forced_end) == hypotheses


@pytest.mark.parametrize("beam_size", range(2, 9))
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
def test_of_equals_the_earlier_beam_and_the_smaller_token_go_first(beam_size: int, length_penalty: float) -> None:
    for seed in range(20):
        params = sentence_params(beam_size, length_penalty, 4, beam_size, early_stopping=seed % 2 == 0)
        table = table_with_ties(seed, vocab=5)
        _assert_equal(_decode(table, params), beam(table, params))


def test_a_strongly_negative_length_penalty_still_lets_a_search_end_before_its_limit() -> None:
    # Scores of ten times the length to the tenth power are far below Hugging Face's minus infinity of -1e9.
    table = random_table(5, vocab=20, end_bias=-2.0)
    params = sentence_params(beam_size=2, length_penalty=-10.0, max_new_tokens=9)
    asked: list[int] = []

    def counting(source: Tokens, prefix: Tokens) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        asked.append(len(prefix))
        log_probs = table(source, prefix).copy()
        log_probs[END] = -30.0 if len(prefix) < 6 else 0.0
        return log_probs

    _decode(counting, params)
    assert max(asked) == 6
