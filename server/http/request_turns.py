"""Turns of requests that begin at the same time."""

import asyncio
from collections import deque
from collections.abc import Callable


class RequestTurns:
    """Begins requests one by one: in each iteration of the event loop one, and one probe. Used by its thread only.

    Forty connections that send a hundred requests each at once would otherwise begin forty in every iteration, and a
    probe, which takes some iterations, would wait for all of them.
    """

    def __init__(self) -> None:
        self._waiting = (deque[Callable[[], None]](), deque[Callable[[], None]]())
        self._is_taken = [False, False]  # one has begun in this iteration

    def begin(self, start: Callable[[], None], *, is_probe: bool) -> None:
        """Call `start` now if no other request has begun in this iteration, else after those that wait already."""
        if self._is_taken[is_probe]:
            self._waiting[is_probe].append(start)
            return
        self._is_taken[is_probe] = True
        asyncio.get_running_loop().call_soon(self._end, is_probe)
        start()

    def _end(self, is_probe: bool) -> None:
        self._is_taken[is_probe] = False
        if self._waiting[is_probe]:
            self.begin(self._waiting[is_probe].popleft(), is_probe=is_probe)
