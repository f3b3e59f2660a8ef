"""Feeds the requests of a long call to the queue in turn, so that one call does not fill it."""

import asyncio
from collections.abc import Callable, Sequence

from server.engine.fair_shares import QueuedCall
from server.engine.scheduler import Scheduler
from server.interface.request import Completion, Request

_PARTS = 8  # of the requests that a call may have in the queue: more are fed when one of these parts is complete


class CallFeeder:
    """Keeps at most `max_present` requests of one call in the queue and in engines. For the event loop's thread."""

    def __init__(
        self,
        scheduler: Scheduler,
        requests: Sequence[Request],
        futures: Sequence[asyncio.Future[Completion]],
        max_present: int,
        wake: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._requests = requests
        self._futures = futures
        self._max_present = max_present
        self._wake = wake
        self._call: QueuedCall | None = None
        self._num_fed = 0
        self._num_present = 0
        self._is_stopped = False

    def start(self, client: str) -> None:
        """Submit the first requests. Raises `QueueFull`, and then submits none."""
        first = self._requests[: self._max_present]
        self._call = self._scheduler.submit(first, client)
        self._count(len(first))
        self._wake()

    def stop(self) -> None:
        """Submit no more requests."""
        self._is_stopped = True

    def _count(self, number: int) -> None:
        begin, self._num_fed = self._num_fed, self._num_fed + number
        self._num_present += number
        if self._num_fed < len(self._requests) or begin:
            for future in self._futures[begin : self._num_fed]:
                future.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Future[Completion]) -> None:
        self._num_present -= 1
        room = self._max_present - self._num_present
        if self._is_stopped or self._num_fed == len(self._requests) or room < max(self._max_present // _PARTS, 1):
            return
        # Those that a closing pool has answered already are not decoded.
        more = self._requests[self._num_fed : self._num_fed + room]
        awaited = [
            request
            for request, future in zip(more, self._futures[self._num_fed : self._num_fed + room], strict=True)
            if not future.done()
        ]
        if awaited:
            self._scheduler.submit(awaited, call=self._call)
        self._count(len(more))
        if awaited:
            self._wake()
