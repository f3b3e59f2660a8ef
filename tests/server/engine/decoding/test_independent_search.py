import numpy as np
import pytest

from server.engine.decoding.independent_search import IndependentSearch
from server.engine.decoding.search import SearchLimits
from server.interface.request import FinishReason, Sampling, SentenceParams
from tests.fakes.sentence_params import sentence_params

END = 0


def _params(**changes: object) -> SentenceParams:
    values = {"sampling": Sampling(), "num_hypotheses": 2, "max_new_tokens": 3, "length_penalty": 0.0, **changes}
    return sentence_params(**values)


def _search(num_hypotheses: int = 2, *, forced_end: bool = False) -> IndependentSearch:
    limits = SearchLimits(max_requests=6, max_new_tokens=8, end_token=END, forced_end=forced_end)
    return IndependentSearch(num_hypotheses, limits)


def _step(search: IndependentSearch, tokens: list[list[int]], log_probs: list[list[float]]) -> list[bool]:
    choice = search.advance(np.array(tokens)[..., None], np.array(log_probs, np.float32)[..., None])
    assert choice.parents.tolist() == [list(range(search.beam_size))] * len(tokens)
    return list(map(bool, choice.finished))


def test_a_hypothesis_that_has_ended_takes_no_more_tokens() -> None:
    search = _search()
    search.add(_params())
    assert _step(search, [[5, END]], [[-1.0, -0.25]]) == [False]
    assert search.prefixes(0).tolist() == [[5], [END]]
    assert search.final_tokens(0).size == 0
    assert _step(search, [[6, 7]], [[-1.0, -9.0]]) == [False]
    assert _step(search, [[7, 7]], [[-1.0, -9.0]]) == [True]  # the limit
    best, other = search.hypotheses(0)
    assert (best.token_ids, best.log_probability, best.finish_reason) == ([], -0.25, FinishReason.STOP)
    assert (other.token_ids, other.log_probability, other.finish_reason) == ([5, 6, 7], -3.0, FinishReason.LENGTH)


def test_a_request_is_finished_when_all_its_hypotheses_have_ended() -> None:
    search = _search()
    search.add(_params())
    search.add(_params(max_new_tokens=1))
    assert _step(search, [[END, END], [5, 6]], [[-2.0, -1.0], [-1.0, -2.0]]) == [True, True]
    assert [each.log_probability for each in search.hypotheses(0)] == [-1.0, -2.0]
    assert [each.token_ids for each in search.hypotheses(1)] == [[5], [6]]


def test_alternatives_stay_in_the_order_of_their_first_tokens() -> None:
    search = _search()
    search.add(_params(sampling=None, return_alternatives=True, max_new_tokens=1))
    _step(search, [[5, 6]], [[-3.0, -1.0]])
    assert [each.token_ids for each in search.hypotheses(0)] == [[5], [6]]


def test_the_end_that_a_limit_forces_costs_nothing() -> None:
    search = _search(1, forced_end=True)
    search.add(_params(num_hypotheses=1, max_new_tokens=2))
    assert _step(search, [[5]], [[-1.0]]) == [False]
    assert search.final_tokens(0).tolist() == [5]
    assert _step(search, [[6]], [[-4.0]]) == [True]
    [only] = search.hypotheses(0)
    assert (only.token_ids, only.log_probability, only.finish_reason) == ([5], -1.0, FinishReason.LENGTH)


def test_a_loop_ends_its_hypothesis_alone() -> None:
    search = _search()
    search.add(_params(max_new_tokens=8, max_repetitions=2))
    for tokens in ([5, 1], [5, 2], [5, 3]):
        assert _step(search, [tokens], [[-1.0, -1.0]]) == [False]
    assert _step(search, [[5, END]], [[-1.0, -1.0]]) == [True]
    reasons = {tuple(each.token_ids): each.finish_reason for each in search.hypotheses(0)}
    assert reasons == {(5, 5, 5): FinishReason.REPETITION, (1, 2, 3): FinishReason.STOP}


@pytest.mark.parametrize("num_hypotheses", [1, 2])
def test_a_request_that_moves_takes_its_state_along(num_hypotheses: int) -> None:
    search = _search(num_hypotheses)
    for length in (1, 4, 4):
        search.add(_params(num_hypotheses=num_hypotheses, max_new_tokens=length))
    tokens = [[number] * num_hypotheses for number in (5, 6, 7)]
    assert _step(search, tokens, [[-1.0] * num_hypotheses] * 3) == [True, False, False]
    search.remove([0], [2], 2)
    assert search.prefixes(0).tolist() == [[7]] * num_hypotheses
    search.add(_params(num_hypotheses=num_hypotheses, max_new_tokens=2))
    assert search.prefixes(2).shape == (num_hypotheses, 0)
    ends = [[END] * num_hypotheses, [8] * num_hypotheses, [9] * num_hypotheses]
    assert _step(search, ends, [[-0.5] * num_hypotheses] * 3) == [True, False, False]
    first = search.hypotheses(0)
    assert {tuple(each.token_ids) for each in first} == {(7,)}
    assert {each.log_probability for each in first} == {-1.5}
    assert search.prefixes(1).tolist() == [[6, 8]] * num_hypotheses
    assert search.prefixes(2).tolist() == [[9]] * num_hypotheses
