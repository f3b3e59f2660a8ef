"""Whether time grows with the length of a text, on machines of any speed."""

import gc
import math
import time
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")

_FACTOR = 8
_MAX_GROWTH = 40  # quadratic time would be 64 times as much; a step in a linear time takes up to 22
_MIN_SECONDS = 0.001  # less is too short to measure
_MAX_ATTEMPTS = 6  # other processes disturb a measurement, and never for the better


def assert_linear_time(make: Callable[[int], Made], process: Callable[[Made], object], length: int) -> None:
    """Assert that processing what `make(length)` returns takes hardly longer than eight times an eighth of it.

    The time of the processor is measured, and neither that of `make` nor of collecting garbage, which grows with what
    other tests left behind, is counted.
    """

    def seconds(length: int) -> float:
        made = make(length)
        begun = time.process_time()
        process(made)
        return time.process_time() - begun

    collects = gc.isenabled()
    gc.disable()
    try:
        seconds(length // _FACTOR)
        short = long = math.inf
        for _ in range(_MAX_ATTEMPTS):
            short = min(short, seconds(length // _FACTOR))
            long = min(long, seconds(length))
            if long < _MAX_GROWTH * max(short, _MIN_SECONDS):
                return
    finally:
        if collects:
            gc.enable()
    raise AssertionError(f"{length // _FACTOR} took {short:.4f} s and {length} took {long:.4f} s")
