import numpy as np

from server.engine.decoding.forced_search import ForcedSearch
from server.engine.decoding.request_decoder import ForcedTokens
from server.engine.decoding.search import SearchLimits
from server.engine.model_runner import RequestRows
from tests.fakes.sentence_params import sentence_params


def _search() -> ForcedSearch:
    return ForcedSearch(SearchLimits(max_requests=4, max_new_tokens=9, end_token=0))


def _step(search: ForcedSearch, *tokens: int) -> list[bool]:
    choice = search.advance(np.array(tokens)[:, None, None], np.zeros((len(tokens), 1, 1), np.float32))
    assert choice.tokens.tolist() == [[token] for token in tokens]
    assert choice.parents.tolist() == [[0]] * len(tokens)
    return list(map(bool, choice.finished))


def test_a_request_is_finished_with_its_last_forced_token() -> None:
    search = _search()
    search.add(sentence_params(target_prefix=(5, 6)))
    search.add(sentence_params(forced_target=(7, 8, 0)))
    search.add(sentence_params(target_prefix=(9,)))
    assert _step(search, 5, 7, 9) == [False, False, True]
    search.remove([], [], 2)
    assert [search.num_decoded(index) for index in range(2)] == [1, 1]
    search.add(sentence_params(target_prefix=(4, 4)))
    assert search.num_decoded(2) == 0
    assert _step(search, 6, 8, 4) == [True, False, False]
    search.remove([0], [2], 2)
    assert [search.num_decoded(index) for index in range(2)] == [1, 2]
    assert _step(search, 4, 0) == [True, True]
    assert search.hypotheses(0) == []
    assert search.final_tokens(0).size == 0
    assert search.prefixes(0).shape == (1, 0)


def test_forced_tokens_are_those_of_the_prefix_or_of_the_translation() -> None:
    assert ForcedTokens.is_requested(sentence_params(target_prefix=(5,)))
    assert ForcedTokens.is_requested(sentence_params(forced_target=(5, 0)))
    assert not ForcedTokens.is_requested(sentence_params())
    forced = ForcedTokens(sentence_params(forced_target=(2, 1, 0)))
    logits = np.array([[1.0, 2.0, 4.0]], np.float32)
    none = np.zeros((1, 0))
    normalizer = np.array([0.5], np.float32)
    rows = RequestRows(none.astype(np.int64), none.astype(np.float32), normalizer, logits, np.arange(1), None)
    found = [forced.candidate(number, rows) for number in range(3)]
    assert [int(token[0, 0]) for token, _ in found] == [2, 1, 0]
    assert [float(log_prob[0, 0]) for _, log_prob in found] == [3.5, 1.5, 0.5]
    without = RequestRows(none.astype(np.int64), none.astype(np.float32), normalizer, None, np.arange(1), None)
    assert np.isnan(forced.candidate(0, without)[1][0, 0])
