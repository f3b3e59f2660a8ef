import numpy as np
import pytest
from numpy.typing import NDArray

from server.engine.decoding.candidate_selection import CandidateSelection, Selected
from server.engine.model_runner import RequestRows
from server.interface.request import Sampling, SentenceParams
from tests.fakes.sentence_params import sentence_params

END = 0
LOGITS = np.array([[0.0, 5.0, 3.0, 4.0, 1.0, 2.0], [6.0, 0.0, 1.0, 2.0, 3.0, 4.0]], np.float32)
NORMALIZER = np.array([8.0, 7.0], np.float32)


def _select(
    params: SentenceParams, num_candidates: int, logits: NDArray[np.float32] | None = LOGITS, length: int = 0
) -> Selected:
    graph = np.array([[1, 3], [0, 5]]), np.array([[-3.0, -4.0], [-1.0, -3.0]], np.float32)
    rows = RequestRows(*graph, NORMALIZER, logits, np.arange(2), None)
    return CandidateSelection(params, END).select(np.full((2, length), 9, np.int32), num_candidates, rows)


def test_without_logits_the_candidates_are_those_of_the_graph() -> None:
    found = _select(sentence_params(2), 2, None)
    assert found.tokens.tolist() == [[1, 3], [0, 5]]
    assert found.search_log_probs is found.log_probs


def test_beams_are_ranked_by_the_scores_behind_the_processors() -> None:
    found = _select(sentence_params(2, suppress_tokens=(1,)), 2)
    assert found.tokens.tolist() == [[3, 2], [0, 5]]
    assert found.search_log_probs.tolist() == found.log_probs.tolist() == [[-4.0, -5.0], [-1.0, -3.0]]


def test_a_greedy_row_without_a_possible_token_ends_and_a_beam_does_not() -> None:
    everything = tuple(range(6))
    greedy = _select(sentence_params(1, suppress_tokens=everything), 1)
    assert greedy.tokens.tolist() == [[END], [END]]
    assert greedy.log_probs.tolist() == greedy.search_log_probs.tolist() == [[-8.0], [-1.0]]
    beams = _select(sentence_params(2, suppress_tokens=everything), 2)
    assert np.isneginf(beams.search_log_probs).all()


def test_required_tokens_are_candidates_once() -> None:
    found = _select(sentence_params(2, required_phrases=((4, 1),)), 4)
    assert found.tokens.tolist() == [[1, 3, 1, 4], [0, 5, 1, 4]]
    scores = found.search_log_probs.tolist()
    assert scores[0] == [-3.0, -4.0, -np.inf, -7.0]
    assert scores[1] == [-1.0, -3.0, -7.0, -4.0]


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


def test_required_tokens_that_a_processor_changes_are_searched_in_all_logits() -> None:
    params = sentence_params(2, required_phrases=((4,),), suppress_tokens=(1,))
    assert not CandidateSelection(params, END).takes_graph_candidates
    found = _select(params, 3)
    assert found.tokens.tolist() == [[3, 2, 4], [0, 5, 4]]


def test_the_first_tokens_of_alternatives_are_the_best_of_the_first_row_and_not_the_end() -> None:
    params = sentence_params(return_alternatives=True, num_hypotheses=2)
    first = _select(params, 1, LOGITS[[1, 0]])
    assert first.tokens.tolist() == [[5], [4]]
    later = _select(params, 1, length=1)
    assert later.tokens.tolist() == [[1], [END]]
    prefixed = sentence_params(return_alternatives=True, num_hypotheses=2, target_prefix=(9,))
    assert _select(prefixed, 1, LOGITS[[1, 0]], length=1).tokens.tolist() == [[5], [4]]


def test_a_sample_has_its_log_probability_in_the_model() -> None:
    found = _select(sentence_params(sampling=Sampling(top_k=1, temperature=0.5), num_hypotheses=2), 1)
    assert found.tokens.tolist() == [[1], [0]]
    assert found.log_probs.tolist() == [[-3.0], [-1.0]]


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
