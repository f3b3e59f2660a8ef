"""The open loop: every request leaves at the instant it is due, independently of earlier answers."""

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
    in_flight: Group,
) -> None:
    """Call `send` for each request at its instant on the clock, each in its own greenlet; the instants ascend.

    Returns after the last has started, or as soon as `stopped` is set.
    """
    for due, what in arrivals:
        wait = due - clock()
        if wait > 0:
            stopped.wait(wait)
        if stopped.is_set():
            return
        in_flight.spawn(send, what, due)
        if wait <= 0:
            gevent.sleep(0)  # let earlier greenlets send before the next one starts
