"""Texts that are made to take long do not: the time to read them grows with their length, not with its square."""

import time
from collections.abc import Callable

import pytest

from server.text.markdown import may_be_special
from server.text.symbols import Symbols

SYMBOLS = Symbols(map(chr, range(0x250)))

_LENGTH = 5000
_GROWTH = 5  # of the length; the time of something quadratic grows 25 times
_MOST_TIMES_LONGER = 15.0
_FLOOR_SECONDS = 0.02  # shorter times say nothing about growth


def _seconds(work: Callable[[str], object], text: str) -> float:
    """The processor time of this thread, which what else runs on the machine does not change; the best of three."""
    times = []
    for _ in range(3):
        begun = time.thread_time()
        work(text)
        times.append(time.thread_time() - begun)
    return min(times)


def _grows_with_length(work: Callable[[str], object], make: Callable[[int], str]) -> bool:
    short = max(_seconds(work, make(_LENGTH)), _FLOOR_SECONDS)
    return _seconds(work, make(_LENGTH * _GROWTH)) < short * _MOST_TIMES_LONGER


@pytest.mark.parametrize("space", ["\n", " ", "\t", " \n", "\r\n", "\u2028"])
def test_white_space_is_looked_at_once(space: str) -> None:
    assert _grows_with_length(lambda text: may_be_special(text, SYMBOLS), lambda length: f"a{space * length}b")
