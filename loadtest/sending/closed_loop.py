"""The closed loop: users who send a request, wait for the answer, and then send the next.

A server that gets slower is asked less often by them, so they hide what it cannot do. Their stages are labelled.
"""

from collections.abc import Callable
from itertools import count

from gevent.event import Event

from loadtest.results.records import Outcome, Record
from loadtest.sending.exchange import Prepared

MAX_PAUSE_SECONDS = 5.0  # a rejected user obeys Retry-After up to this long
NO_ANSWER_PAUSE_SECONDS = 0.5  # a server that is gone is not asked a thousand times a second


def run_user(
    user: int,
    num_users: int,
    request: Callable[[int], Prepared],
    send: Callable[[Prepared], Record],
    seconds_left: Callable[[], float],
    stopped: Event,
) -> None:
    """What one user does until no seconds are left: requests number `user`, `user + num_users`, and so on."""
    for number in count(user, num_users):
        if seconds_left() <= 0 or stopped.is_set():
            return
        pause = pause_after(send(request(number)))
        if pause:
            stopped.wait(max(min(pause, seconds_left()), 0.0))


def pause_after(record: Record) -> float:
    """Seconds that a user waits before the next request: none, unless the server asked for some or is not there."""
    if record.outcome is Outcome.REJECTED:
        return min(1.0 if record.retry_after is None else record.retry_after, MAX_PAUSE_SECONDS)
    return 0.0 if record.status or record.outcome is Outcome.HUNG_UP else NO_ANSWER_PAUSE_SECONDS
