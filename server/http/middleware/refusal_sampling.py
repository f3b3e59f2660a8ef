"""Sampling of log lines about refused requests, which can be thousands a second."""

import time
from collections.abc import Callable

_WINDOW_SECONDS = 10.0
_MAX_LINES = 10  # of one status in a window
_REFUSED = frozenset({401, 403, 408, 413, 429, 431, 503})


class RefusalSampling:
    """Selects the refusals to log: the first ten of each status in ten seconds. The others are counted."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._windows: dict[int, tuple[float, int]] = {}  # by status: begin, number of refusals

    def select(self, status: int) -> int | None:
        """Return None for a line to leave out, else the number of lines of this status left out before it."""
        if status not in _REFUSED:
            return 0
        now = self._clock()
        begun, count = self._windows.get(status, (now, 0))
        left_out = 0
        if now - begun >= _WINDOW_SECONDS:
            left_out, begun, count = max(count - _MAX_LINES, 0), now, 0
        self._windows[status] = begun, count + 1
        return left_out if count < _MAX_LINES else None
