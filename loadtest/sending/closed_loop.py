"""The closed loop: users send a request, wait for the answer, then send the next.

A slower server receives fewer requests from them, so they hide its limits. Their stages are labelled.
"""

from collections.abc import Callable
from itertools import count

from gevent.event import Event

from loadtest.results.records import Outcome, Record
from loadtest.sending.exchange import Prepared

MAX_PAUSE_SECONDS = 5.0  # limit of a Retry-After that a rejected user obeys
NO_ANSWER_PAUSE_SECONDS = 0.5  # otherwise an unreachable server would receive a thousand requests per second


def run_user(
    user: int,
    num_users: int,
    request: Callable[[int], Prepared],
    send: Callable[[Prepared], Record],
    seconds_left: Callable[[], float],
    stopped: Event,
) -> None:
    """Send requests number `user`, `user + num_users`, and so on, until no seconds are left."""
    for number in count(user, num_users):
        if seconds_left() <= 0 or stopped.is_set():
            return
        pause = pause_after(send(request(number)))
        if pause:
            stopped.wait(max(min(pause, seconds_left()), 0.0))


def pause_after(record: Record) -> float:
    """Return the seconds before a user's next request: 0 unless the server rejected this one or is unreachable."""
    if record.outcome is Outcome.REJECTED:
        return min(1.0 if record.retry_after is None else record.retry_after, MAX_PAUSE_SECONDS)
    return 0.0 if record.status or record.outcome is Outcome.HUNG_UP else NO_ANSWER_PAUSE_SECONDS
