import numpy as np
import pytest

from kernels import cache_rows as rows
from kernels import searches as beams
from kernels.cache_rows import children_in_rows
from kernels.searches import NEVER, RunningBeams

_END = 3


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
