"""Overload control: the pace of finished requests, and the delay of calls in the queue."""

import math
from collections import deque

_PACE_REQUESTS = 256  # finished requests from which the pace is estimated
_MANY_REQUESTS = 32  # two that finish together would be a pace without limit
# A burst is admitted, however long its queue: only a queue that has been too long for this time is an overload. After a
# rejection, new calls are part of the same overload for a while: the queue would fill up again with every wave.
_OVERLOAD_SECONDS = 0.3
_OVERLOAD_LASTS_SECONDS = 2.0


class Pace:
    """Tokens per second of the last finished requests: source tokens, those of a request once for each of its rows.

    Rows per second would be four times as many with short sentences as with long ones.
    """

    def __init__(self) -> None:
        self._finished: deque[tuple[float, int]] = deque(maxlen=_PACE_REQUESTS)  # when, and how many tokens
        self._num_tokens = 0  # of all of these
        self._usual = 0.0

    def add(self, now: float, num_tokens: int) -> None:
        """Count a request that finished `now`."""
        if len(self._finished) == _PACE_REQUESTS:
            self._num_tokens -= self._finished[0][1]
        self._finished.append((now, num_tokens))
        self._num_tokens += num_tokens

    def clear(self) -> None:
        """Forget all requests, but not the usual pace."""
        if self._are_many:
            self._usual = self.tokens_per_second()
        self._finished.clear()
        self._num_tokens = 0

    @property
    def _are_many(self) -> bool:
        return len(self._finished) >= _MANY_REQUESTS

    @property
    def usual(self) -> float:
        """The pace, or the one of many requests before the last `clear` if there are few since; 0 if it is unknown."""
        return self.tokens_per_second() if self._are_many or not self._usual else self._usual

    def tokens_per_second(self) -> float:
        """Return the pace, 0 if it is unknown."""
        if len(self._finished) < 2 or self._finished[-1][0] <= self._finished[0][0]:
            return 0.0
        seconds = self._finished[-1][0] - self._finished[0][0]
        return (self._num_tokens - self._finished[0][1]) / seconds


class DelayControl:
    """Controlled delay (Nichols and Jacobson 2012, doi:10.1145/2208917.2209336), applied at admission.

    A queue that becomes too long may grow for a moment, unless calls were rejected shortly before. A queue that was too
    long counts as such until its delay is half of `max_seconds`.
    """

    def __init__(self, max_seconds: float) -> None:
        self._max_seconds = max_seconds
        self._congested_since: float | None = None
        self._rejected_at = -math.inf

    def clear(self) -> None:
        """Forget the present congestion; earlier rejections still count."""
        self._congested_since = None

    def rejects(self, now: float, delay_seconds: float) -> bool:
        """Whether a call that begins `now` is rejected, if it expects this delay."""
        if delay_seconds <= self._max_seconds / 2:
            self._congested_since = None
        elif delay_seconds > self._max_seconds:
            if self._congested_since is None:
                self._congested_since = now
            is_overload = now - self._congested_since >= _OVERLOAD_SECONDS
            if is_overload or now - self._rejected_at < _OVERLOAD_LASTS_SECONDS:
                self._rejected_at = now
                return True
        return False
