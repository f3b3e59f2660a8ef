"""Feeds the requests of a long call to the queue in turn, so that one call does not fill it."""

from collections.abc import Callable, Sequence

from server.engine.fair_shares import QueuedCall
from server.engine.scheduler import Scheduler
from server.interface.request import Request
from server.workers.pending_call import PendingCall

_PARTS = 8  # of the requests that a call may have in the queue: more are fed when one of these parts is complete


class CallFeeder:
    """Keeps at most `max_present` requests of one call in the queue and in engines. For the event loop's thread."""

    def __init__(
        self,
        scheduler: Scheduler,
        requests: Sequence[Request],
        pending: PendingCall,
        max_present: int,
        wake: Callable[[], None],
    ) -> None:
        self._scheduler = scheduler
        self._requests = requests
        self._pending = pending
        self._max_present = max_present
        self._wake = wake
        self._call: QueuedCall | None = None
        self._num_fed = 0
        self._num_present = 0

    def start(self, client: str) -> None:
        """Submit the first requests. Raises `QueueFull`, and then submits none."""
        first = self._requests[: self._max_present]
        self._call = self._scheduler.submit(first, client)
        self._num_fed = self._num_present = len(first)
        if self._num_fed < len(self._requests):
            self._pending.on_completed = self._completed
        self._wake()

    def stop(self) -> None:
        """Submit no more requests."""
        self._num_fed = len(self._requests)

    def _completed(self, number: int) -> None:
        self._num_present -= number
        room = self._max_present - self._num_present
        if self._num_fed == len(self._requests) or room < max(self._max_present // _PARTS, 1):
            return
        more = self._requests[self._num_fed : self._num_fed + room]
        self._num_fed += len(more)
        self._num_present += len(more)
        # Those that a closing pool has answered already are not decoded.
        awaited = [request for request in more if not self._pending.has_completed(request)]
        if awaited:
            self._scheduler.submit(awaited, call=self._call)
            self._wake()
