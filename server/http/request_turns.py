"""Turns of requests that begin at the same time."""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from server.engine.overload import DelayControl

if TYPE_CHECKING:
    from uvicorn._types import HTTPScope

PROBES = (b"/health/live", b"/health/ready")

_AT_ONCE = 4

IS_LATE = "kvasir.is_late"
"""Key of a scope's state: set for requests that would have waited too long for their turn."""


class RequestTurns:
    """Begins four requests at most in each iteration of the event loop, and as many probes. Used by its thread only.

    Forty connections that send a hundred requests each at once would otherwise begin forty in every iteration, and a
    probe, which takes some iterations, would wait for all of them. A request may wait `max_seconds` for its turn,
    except during a burst; without this limit, for an application that does not reject late ones, none is late.
    """

    def __init__(self, max_seconds: float = math.inf) -> None:
        self._waiting = (deque[tuple[float, Callable[[], None]]](), deque[tuple[float, Callable[[], None]]]())
        self._num_begun = [0, 0]  # in this iteration
        self._delay = DelayControl(max_seconds)

    def begin(self, start: Callable[[], None], scope: "HTTPScope") -> None:
        """Call `start` now, or after those that wait already if enough others have begun in this iteration.

        A POST request is late if, for a while, the one whose turn is next has waited too long. It begins at once, and
        is rejected: with requests that arrive faster than the event loop begins them, all would be answered late,
        however few of them the engines accept.
        """
        if scope["method"] == "POST" and self._is_late():
            scope["state"][IS_LATE] = True
            start()
        else:
            self._begin(start, is_probe=scope["raw_path"] in PROBES)

    def _is_late(self) -> bool:
        now, waiting = asyncio.get_running_loop().time(), self._waiting[False]
        return self._delay.rejects(now, now - waiting[0][0] if waiting else 0.0)

    def _begin(self, start: Callable[[], None], *, is_probe: bool) -> None:
        if self._num_begun[is_probe] == _AT_ONCE:
            self._waiting[is_probe].append((asyncio.get_running_loop().time(), start))
            return
        if not self._num_begun[is_probe]:
            asyncio.get_running_loop().call_soon(self._end, is_probe)
        self._num_begun[is_probe] += 1
        start()

    def _end(self, is_probe: bool) -> None:
        self._num_begun[is_probe] = 0
        waiting = self._waiting[is_probe]
        while waiting and self._num_begun[is_probe] < _AT_ONCE:
            self._begin(waiting.popleft()[1], is_probe=is_probe)
