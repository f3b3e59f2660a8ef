"""The clock of a run: seconds since its start, common to all processes on all machines.

Wall clocks of two machines may differ by seconds, and may jump. Each worker's monotonic clock is therefore read across
the network, before and after each stage, and its uncertainty is part of the results.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

NUM_ROUND_TRIPS = 16
# A worker with a wrong clock sends its requests early or late, and no record shows it.
MAX_UNCERTAINTY_MS = 10.0


class ClockUnknown(ValueError):
    """The uncertainty of a worker's clock exceeds the limit."""


class RunClock:
    """Seconds since the run's start, by this process's monotonic clock."""

    def __init__(self, zero: float) -> None:
        """Take the value of this process's `time.perf_counter` at the run's start as zero."""
        self.zero = zero

    def __call__(self) -> float:
        """Return the seconds since the run's start."""
        return time.perf_counter() - self.zero


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A request for a worker's time and its answer."""

    asked: float  # on the run's clock
    read: float  # of the worker's `time.perf_counter`
    answered: float  # on the run's clock


@dataclass(frozen=True, slots=True)
class WorkerClock:
    """A worker's clock relative to the run's."""

    zero: float  # of its `time.perf_counter` at the run's start
    uncertainty: float  # seconds, in both directions


def worker_clock(round_trips: Iterable[RoundTrip]) -> WorkerClock:
    """Return the estimate of a worker's clock from several round trips.

    The clock was read between request and answer, so the quickest round trip is the most precise (Cristian 1989,
    "Probabilistic clock synchronization").
    """
    quickest = min(round_trips, key=lambda trip: trip.answered - trip.asked)
    half = (quickest.answered - quickest.asked) / 2
    return WorkerClock(quickest.read - (quickest.asked + half), half)


def check_clocks(clocks: Iterable[WorkerClock]) -> None:
    """Raise `ClockUnknown` if the uncertainty of a clock exceeds `MAX_UNCERTAINTY_MS`."""
    worst = max(clock.uncertainty for clock in clocks) * 1000
    if worst > MAX_UNCERTAINTY_MS:
        raise ClockUnknown(
            f"the uncertainty of a worker's clock must be at most {MAX_UNCERTAINTY_MS:g} ms. Given: {worst:.1f} "
            f"(quickest of {NUM_ROUND_TRIPS} round trips: {2 * worst:.1f} ms); use a faster network"
        )


def known_within(before: WorkerClock, after: WorkerClock) -> float:
    """Return the seconds by which a clock may have been wrong between two measurements, if the first was used."""
    return max(before.uncertainty, abs(after.zero - before.zero) + after.uncertainty)
