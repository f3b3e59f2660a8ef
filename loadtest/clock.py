"""The clock of a run: seconds since its start, the same for all processes that take part."""

import time


class RunClock:
    """Seconds since the run's start. It never jumps: the wall clock is read once, and only to agree on the start.

    Processes of one machine agree to microseconds, those of several as well as their wall clocks do.
    """

    def __init__(self, started_at: float) -> None:
        """`started_at` is the run's start on the wall clock, seconds since 1970."""
        self._zero = time.perf_counter() - (time.time() - started_at)

    def __call__(self) -> float:
        """Now."""
        return time.perf_counter() - self._zero
