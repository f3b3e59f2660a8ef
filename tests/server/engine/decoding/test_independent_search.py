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


def test_the_end_that_a_limit_forces_costs_nothing() -> None:
    search = _search(1, forced_end=True)
    search.add(_params(num_hypotheses=1, max_new_tokens=2))
    assert _step(search, [[5]], [[-1.0]]) == [False]
    assert search.final_tokens(0).tolist() == [5]
    assert _step(search, [[6]], [[-4.0]]) == [True]
    [only] = search.hypotheses(0)
    assert (only.token_ids, only.log_probability, only.finish_reason) == ([5], -1.0, FinishReason.LENGTH)


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
