from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels import cache_rows as rows
from kernels import searches as beams
from kernels.cache_rows import children_in_rows
from kernels.searches import NEVER, RunningBeams

_END = 3
_MAX_TOKENS = 9


def _native_and_numpy(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> tuple[object, object]:
    native = run()
    with monkeypatch.context() as without:
        without.setattr(beams, "_library", None)
        without.setattr(rows, "_library", None)
        return native, run()


def _candidates(random: np.random.Generator, num: int, beam_size: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Few different numbers, so that many sums are equal, and some that are none."""
    shape = (num, beam_size, 2 * beam_size)
    log_probs = -random.integers(0, 5, shape).astype(np.float32) / np.float32(2)
    log_probs[random.random(shape) < 0.05] = -np.inf
    log_probs[random.random(shape) < 0.02] = np.nan
    return random.integers(0, 6, shape), log_probs


def _nan_is_nan(numbers: NDArray[np.float32]) -> bytes:
    return np.where(np.isnan(numbers), np.float32(np.nan), numbers).tobytes()


@pytest.mark.parametrize("beam_size", [1, 2, 4, 7])
def test_a_native_step_is_that_of_numpy_bit_by_bit(beam_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    capacity, num = 6, 5

    def decode() -> list[object]:
        random = np.random.default_rng(beam_size)
        running = RunningBeams(capacity, beam_size, _MAX_TOKENS, _END)
        running.sums[:num, 1:] = NEVER
        running.max_lengths[:num] = _MAX_TOKENS - np.arange(num)
        steps: list[object] = []
        for _ in range(_MAX_TOKENS - num + 1):
            step = running.advance(*_candidates(random, num, beam_size))
            steps += [step.tokens.tolist(), step.parents.tolist(), _nan_is_nan(running.sums), running.lengths.tolist()]
            steps += [running.tokens[place, :, : running.lengths[place]].tolist() for place in range(num)]
            steps += [(place, tokens.tolist(), float(total)) for place, tokens, total in step.ended]
            if running.lengths[0] == 3:  # a request leaves
                running.remove([1], [4])
        return steps

    native, numpy = _native_and_numpy(monkeypatch, decode)
    assert native == numpy


@pytest.mark.parametrize("is_native", [True, False])
def test_hypotheses_end_with_the_end_token_or_at_their_limit(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_native:
        monkeypatch.setattr(beams, "_library", None)
    running = RunningBeams(2, 2, 4, _END)
    running.sums[:, 1] = NEVER
    running.max_lengths[:] = [4, 1]
    tokens = np.array([[[5, _END, 4, 1]] * 2] * 2)
    log_probs = np.array([[[-1.0, -2.0, -3.0, -4.0]] * 2] * 2, np.float32)
    step = running.advance(tokens, log_probs)
    # The first request's end token is second best; the second may have one token only, whichever that is.
    assert [(place, found.tolist(), float(total)) for place, found, total in step.ended] == [
        (0, [_END], -2.0),
        (1, [5], -1.0),
        (1, [_END], -2.0),
    ]
    assert step.tokens[0].tolist() == [5, 4]
    assert step.parents[0].tolist() == [0, 0]
    assert running.tokens[0, :, 0].tolist() == [5, 4]
    assert running.sums[0].tolist() == [-1.0, -3.0]


@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_rows_of_children_are_those_of_numpy(beam_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(beam_size)
    own = random.permutation(8 * beam_size).reshape(8, beam_size)
    parents = random.integers(0, beam_size, (8, beam_size))

    def plan() -> list[list[int]]:
        return [array.tolist() for array in children_in_rows(own, parents)]

    native, numpy = _native_and_numpy(monkeypatch, plan)
    assert native == numpy


@pytest.mark.parametrize("is_native", [True, False])
def test_the_first_child_stays_and_others_take_the_rows_of_beams_that_died(
    is_native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_native:
        monkeypatch.setattr(rows, "_library", None)
    own = np.array([[10, 11, 12], [20, 21, 22]])
    children, sources, destinations = children_in_rows(own, np.array([[2, 2, 2], [1, 0, 2]]))
    assert children.tolist() == [[12, 10, 11], [21, 20, 22]]
    assert sources.tolist() == [12, 12]
    assert destinations.tolist() == [10, 11]
    assert own.tolist() == [[10, 11, 12], [20, 21, 22]]


@pytest.mark.parametrize("is_native", [True, False])
def test_what_has_no_room_is_refused(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_native:
        monkeypatch.setattr(beams, "_library", None)
    running = RunningBeams(2, 2, 1, _END)
    running.max_lengths[:] = 9
    tokens, log_probs = np.zeros((2, 2, 4), np.int64), np.zeros((2, 2, 4), np.float32)
    running.advance(tokens, log_probs)
    with pytest.raises(IndexError):
        running.advance(tokens, log_probs)
    with pytest.raises(IndexError):
        running.advance(np.zeros((3, 2, 4), np.int64), np.zeros((3, 2, 4), np.float32))
