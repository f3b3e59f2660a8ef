"""Searches in C compared with those in NumPy: equal bit by bit, step by step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernels import searches
from server.engine.decoding.beam_search import BeamSearch
from server.engine.decoding.greedy_search import GreedySearch
from server.engine.decoding.native_search import (
    NativeBeamSearch,
    NativeGreedySearch,
    RowSearch,
)
from server.engine.decoding.search import Choice, Search, SearchLimits
from server.engine.model_runner import Candidates
from server.interface.request import SentenceParams
from tests.fakes.sentence_params import sentence_params

END, VOCAB, MAX_TOKENS, MAX_REQUESTS = 0, 6, 12, 5

pytestmark = pytest.mark.skipif(not searches.IS_AVAILABLE, reason="the library was not built")


def _params(random: np.random.Generator, beam_size: int) -> SentenceParams:
    params = sentence_params(
        beam_size,
        float(random.choice([-1.3, 0.0, 0.6, 1.0, 2.5])),
        int(random.integers(1, MAX_TOKENS + 1)),
        num_hypotheses=int(random.integers(1, beam_size + 1)),
        early_stopping=bool(random.integers(2)),
        return_scores=bool(random.integers(2)),
    )
    return replace(params, options=params.options.model_copy(update={"max_repetitions": int(random.integers(4))}))


def _candidates(
    random: np.random.Generator, num_rows: int, width: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return candidates of rows with equal scores, impossible tokens and NaN among them."""
    log_probs = -random.integers(0, 7, (num_rows, width)).astype(np.float32) / np.float32(random.choice([2, 3]))
    log_probs[random.random(log_probs.shape) < 0.03] = -np.inf
    if random.random() < 0.1:
        log_probs[random.random(log_probs.shape) < 0.1] = np.nan
    # Few tokens, so that there are loops.
    return random.integers(0, int(random.choice([2, 3, VOCAB])), log_probs.shape), log_probs


def _bits(numbers: list[object]) -> str:
    return repr(numbers)  # of floats, each digit counts; NaN equals NaN


def _state(search: Search, choice: Choice, index: int) -> str:
    if choice.finished[index]:
        return _bits([*search.hypotheses(index)])
    return _bits(
        [array.tolist() for array in (choice.tokens[index], choice.parents[index], search.final_tokens(index))]
    )


def _assert_equal_searches(native: RowSearch, reference: Search, seed: int) -> None:
    """Drive both with the same requests, which come and go, and the same candidates."""
    random = np.random.default_rng(seed)
    beam_size, num = reference.beam_size, 0
    assert isinstance(native, NativeGreedySearch | NativeBeamSearch)
    for _ in range(2 * MAX_TOKENS):
        while num < MAX_REQUESTS and random.random() < 0.5:
            params = _params(random, beam_size)
            native.add(params)
            reference.add(params)
            num += 1
        if not num:
            continue
        assert native.needs_scores == reference.needs_scores
        rows = random.permutation(MAX_REQUESTS * beam_size)[: num * beam_size].reshape(num, beam_size)
        tokens, log_probs = _candidates(random, MAX_REQUESTS * beam_size, native.num_candidates + 1)
        wanted = slice(native.num_candidates)
        before = [native.prefixes(index).copy() for index in range(num)]
        expected = reference.advance(tokens[rows, wanted], log_probs[rows, wanted])
        if random.random() < 0.5:
            nothing = np.empty(0, np.float32)
            finished = native.step(Candidates(tokens, log_probs, nothing, nothing), rows.ctypes.data, None)
            assert finished == expected.finished.nonzero()[0].tolist()
            choice = native._choice()
        else:
            choice = native.advance(tokens[rows, wanted], log_probs[rows, wanted])
        for index in range(num):
            assert _state(native, choice, index) == _state(reference, expected, index)
            assert native.prefixes(index).tolist() == reference.prefixes(index).tolist()
            if choice.common is not None:
                _assert_common(before[index], choice.common[index])
            assert choice.finished[index] == expected.finished[index]
        kept = ~choice.finished & (random.random(num) > 0.05)
        num_left = int(kept.sum())
        holes, movers = (~kept[:num_left]).nonzero()[0], num_left + kept[num_left:].nonzero()[0]
        for search in (native, reference):
            search.remove(holes.tolist(), movers.tolist(), num_left)
        num = num_left


def _assert_common(beams: NDArray[np.int32], common: NDArray[np.int32]) -> None:
    agrees = np.logical_and.accumulate(beams[:, None] == beams[None], axis=2)
    assert common.tolist() == agrees.sum(axis=2).tolist()


def _limits(forced_end: bool) -> SearchLimits:
    return SearchLimits(MAX_REQUESTS, MAX_TOKENS, END, forced_end)


@settings(max_examples=30, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**32), forced_end=st.booleans())
def test_the_native_greedy_search_is_that_of_numpy_bit_by_bit(seed: int, forced_end: bool) -> None:
    limits = _limits(forced_end)
    _assert_equal_searches(NativeGreedySearch(limits), GreedySearch(limits), seed)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(seed=st.integers(0, 2**32), beam_size=st.integers(2, 5), forced_end=st.booleans())
def test_the_native_beam_search_is_that_of_numpy_bit_by_bit(seed: int, beam_size: int, forced_end: bool) -> None:
    limits = _limits(forced_end)
    _assert_equal_searches(NativeBeamSearch(beam_size, limits), BeamSearch(beam_size, limits), seed)


@pytest.mark.parametrize("search", [NativeGreedySearch(_limits(False)), NativeBeamSearch(2, _limits(False))])
def test_a_request_without_capacity_for_another_token_is_rejected(
    search: NativeGreedySearch | NativeBeamSearch,
) -> None:
    search.add(sentence_params(search.beam_size, max_new_tokens=9 * MAX_TOKENS))
    tokens, log_probs = np.ones((1, 2, 4), np.int64), np.zeros((1, 2, 4), np.float32)
    for _ in range(MAX_TOKENS):
        search.advance(tokens, log_probs)
    with pytest.raises(IndexError, match="shape"):
        search.advance(tokens, log_probs)
