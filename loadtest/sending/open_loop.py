"""The open loop: every request leaves at the instant it is due, whatever became of those before it."""

from collections.abc import Callable, Iterable

import gevent
from gevent.event import Event
from gevent.pool import Group

from loadtest.sending.exchange import Prepared


def dispatch(
    arrivals: Iterable[tuple[float, Prepared]],
    send: Callable[[Prepared, float], object],
    clock: Callable[[], float],
    stopped: Event,
    on_their_way: Group,
) -> None:
    """Calls `send` for each request, in a greenlet of its own, at its instant on the clock; the instants ascend.

    Returns when the last has been started, or as soon as `stopped` is set.
    """
    for due, what in arrivals:
        wait = due - clock()
        if wait > 0:
            stopped.wait(wait)
        if stopped.is_set():
            return
        on_their_way.spawn(send, what, due)
        if wait <= 0:
            gevent.sleep(0)  # what was started before this one leaves before the next
