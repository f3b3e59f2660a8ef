"""Requests of one search: how they move, force first tokens, and end."""

import numpy as np
import pytest
from numpy.typing import NDArray

from server.engine.batch import SearchGroup
from server.engine.decoding.forced_search import ForcedSearch
from server.engine.decoding.request_decoder import RequestDecoder
from server.engine.decoding.search import Choice, EndBonus, SearchLimits
from server.engine.kv_cache import RowIndices
from server.engine.model_runner import Candidates, StepOutputs
from server.interface.errors import EngineFailed
from server.interface.request import FinishReason, Hypothesis, Request, SentenceParams
from tests.fakes.engine import END, request
from tests.fakes.sentence_params import sentence_params

ROWS, CANDIDATES, VOCAB = 6, 3, 5


class Choosing:
    """A search that takes the first candidate, and records what it is told."""

    needs_scores = True

    def __init__(self, beam_size: int = 1, num_candidates: int = 2) -> None:
        self.beam_size, self.num_candidates, self.num_graph_candidates = beam_size, num_candidates, 1
        self.params: list[SentenceParams] = []
        self.moves: list[tuple[list[int], list[int], int]] = []
        self.received: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self.found: list[Hypothesis] = []

    def add(self, params: SentenceParams, bonus: EndBonus | None = None) -> None:
        """Add a request."""
        self.params.append(params)

    def advance(self, tokens: NDArray[np.int64], log_probs: NDArray[np.float32]) -> Choice:
        """Choose the first candidates."""
        self.received.append((tokens.copy(), log_probs.copy()))
        parents = np.zeros(tokens.shape[:2], np.intp)
        return Choice(tokens[:, :, 0].astype(np.int32), parents, np.zeros(len(tokens), np.bool_))

    def prefixes(self, index: int) -> NDArray[np.int32]:
        """Return no tokens."""
        return np.zeros((self.beam_size, 0), np.int32)

    def final_tokens(self, index: int) -> NDArray[np.int32]:
        """Return no tokens."""
        return np.zeros(0, np.int32)

    def hypotheses(self, index: int) -> list[Hypothesis]:
        """Return those that the test has set."""
        return self.found

    def remove(self, holes: list[int], movers: list[int], num_left: int) -> None:
        """Record the moves."""
        self.moves.append((holes, movers, num_left))


def _group(search: Choosing | None = None, beam_size: int = 1) -> SearchGroup:
    rows = np.zeros((ROWS, beam_size), np.intp)
    return SearchGroup(search or Choosing(beam_size), rows)


def _added(group: SearchGroup, *params: SentenceParams, has_decoder: bool = False) -> list[Request]:
    requests = [request((3, END), each) for each in params]
    for each in requests:
        decoder = RequestDecoder(each.params, END, 1.0) if has_decoder else None
        index = group.add(each, decoder)
        group.rows[index] = index
    return requests


def _outputs(logit_rows: RowIndices | None = None) -> StepOutputs:
    """Return outputs in which row r has the candidates r, r + 1, ... with log-probabilities of -0, -1, ..."""
    tokens = np.arange(ROWS)[:, None] + np.arange(CANDIDATES)
    log_probs = np.broadcast_to(-np.arange(CANDIDATES, dtype=np.float32), tokens.shape).copy()
    num_logit_rows = 0 if logit_rows is None else len(logit_rows)
    logits = np.tile(np.arange(VOCAB, dtype=np.float32), (num_logit_rows, 1))
    candidates = Candidates(tokens, log_probs, np.zeros(ROWS, np.float32), logits)
    return StepOutputs(candidates, np.array([], np.intp) if logit_rows is None else logit_rows)


@pytest.mark.parametrize(
    ("removed", "left", "moves"),
    [
        ([0], [3, 1, 2], ([0], [3], 3)),
        ([3], [0, 1, 2], ([], [], 3)),
        ([1, 2], [0, 3], ([1], [3], 2)),
        ([0, 3], [2, 1], ([0], [2], 2)),
        ([0, 1], [2, 3], ([0, 1], [2, 3], 2)),
        ([0, 1, 2, 3], [], ([], [], 0)),
    ],
)
def test_the_last_requests_take_the_places_of_removed_ones(
    removed: list[int], left: list[int], moves: tuple[list[int], list[int], int]
) -> None:
    search = Choosing()
    group = _group(search)
    requests = _added(group, *[sentence_params()] * 4)
    group.remove(removed)
    assert group.requests == [requests[index] for index in left]
    assert group.live_rows[:, 0].tolist() == left
    assert search.moves == [moves]


def test_a_first_token_is_the_only_candidate_of_the_first_step() -> None:
    search = Choosing()
    group = _group(search)
    _added(group, sentence_params(first_token=9), sentence_params())
    assert group.row_search is None
    choice = group.advance(_outputs())
    tokens, log_probs = search.received[0]
    assert tokens[:, 0, 0].tolist() == choice.tokens[:, 0].tolist() == [9, 1]
    assert log_probs[0, 0].tolist() == [0.0, -np.inf]
    assert log_probs[1, 0].tolist() == [0.0, -1.0]
    assert group.advance(_outputs()).tokens[:, 0].tolist() == [0, 1]


def test_a_removed_request_does_not_wait_for_its_first_token() -> None:
    group = _group()
    requests = _added(group, sentence_params(first_token=9), sentence_params(first_token=8))
    group.remove([0])
    assert group.awaiting_first_token == {requests[1].id}
    forced = SearchGroup(ForcedSearch(SearchLimits(4, 9, END)), np.zeros((4, 1), np.intp))
    _added(forced, sentence_params(first_token=9, forced_target=(9, END)), has_decoder=True)
    assert forced.is_forced
    assert not forced.awaiting_first_token


def test_a_decoder_that_failed_finishes_its_request_with_the_error() -> None:
    group = _group()
    ill, _ = _added(
        group, sentence_params(suppress_tokens=(1,)), sentence_params(suppress_tokens=(2,)), has_decoder=True
    )
    decoder = group.decoders[0]
    assert decoder is not None
    decoder.failure = RuntimeError("a bug")
    choice = group.advance(_outputs(np.array([0, 1])))
    assert choice.finished.tolist() == [True, False]
    completion = group.completion(0)
    assert completion.request is ill
    assert isinstance(completion.error, EngineFailed)
    assert completion.hypotheses == []


def test_a_request_without_a_valid_hypothesis_is_an_error() -> None:
    search = Choosing()
    group = _group(search)
    _added(group, sentence_params())
    failed = group.completion(0)
    assert failed.finish_reason is FinishReason.CANCELLED
    assert "no valid hypothesis" in str(failed.error)
    search.found = [Hypothesis([4], -1.0, -1.0, FinishReason.LENGTH), Hypothesis([5], -2.0, -2.0, FinishReason.STOP)]
    done = group.completion(0)
    assert (done.finish_reason, done.error, len(done.hypotheses)) == (FinishReason.LENGTH, None, 2)
