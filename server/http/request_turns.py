"""Turns of requests that begin at the same time."""

import asyncio
from collections import deque
from collections.abc import Callable

_AT_ONCE = 4


class RequestTurns:
    """Begins four requests at most in each iteration of the event loop, and as many probes. Used by its thread only.

    Forty connections that send a hundred requests each at once would otherwise begin forty in every iteration, and a
    probe, which takes some iterations, would wait for all of them.
    """

    def __init__(self) -> None:
        self._waiting = (deque[Callable[[], None]](), deque[Callable[[], None]]())
        self._num_begun = [0, 0]  # in this iteration

    def begin(self, start: Callable[[], None], *, is_probe: bool) -> None:
        """Call `start` now, or after those that wait already if enough others have begun in this iteration."""
        if self._num_begun[is_probe] == _AT_ONCE:
            self._waiting[is_probe].append(start)
            return
        if not self._num_begun[is_probe]:
            asyncio.get_running_loop().call_soon(self._end, is_probe)
        self._num_begun[is_probe] += 1
        start()

    def _end(self, is_probe: bool) -> None:
        self._num_begun[is_probe] = 0
        waiting = self._waiting[is_probe]
        while waiting and self._num_begun[is_probe] < _AT_ONCE:
            self.begin(waiting.popleft(), is_probe=is_probe)
