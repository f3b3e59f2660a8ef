"""Whether time grows with the length of a text, on machines of any speed."""

import time
from collections.abc import Callable
from typing import TypeVar

Made = TypeVar("Made")

_FACTOR = 8
_MAX_GROWTH = 24  # quadratic time would be 64 times as much
_MIN_SECONDS = 0.001  # less is too short to measure


def assert_linear_time(make: Callable[[int], Made], process: Callable[[Made], object], length: int) -> None:
    """Assert that processing what `make(length)` returns takes hardly longer than eight times an eighth of it.

    The time of the processor is measured, and that of `make` isn't counted.
    """

    def seconds(length: int) -> float:
        made = make(length)
        begun = time.process_time()
        process(made)
        return time.process_time() - begun

    seconds(length // _FACTOR)
    limit = _MAX_GROWTH * max(min(seconds(length // _FACTOR) for _ in range(2)), _MIN_SECONDS)
    assert any(seconds(length) < limit for _ in range(2))  # the second time if the first one was disturbed
