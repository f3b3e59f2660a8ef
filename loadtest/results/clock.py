"""The clock of a run: seconds since its start, the same for all processes that take part, wherever they are.

Wall clocks are not asked: those of two machines may be seconds apart, and may jump. Each worker's monotonic clock is
read across the network instead, before and after each stage, and how well it is known is part of what was measured.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

NUM_ROUND_TRIPS = 16
# Requests of a worker whose clock is off leave early or late by as much, and no record shows it.
MAX_UNCERTAINTY_MS = 10.0


class ClockUnknown(ValueError):
    """A worker so far away that nobody can say when it sends."""


class RunClock:
    """Seconds since the run's start, by this process's monotonic clock: it never jumps."""

    def __init__(self, zero: float) -> None:
        """`zero` is what `time.perf_counter` of this process shows at the run's start."""
        self.zero = zero

    def __call__(self) -> float:
        """Now."""
        return time.perf_counter() - self.zero


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """A question for the time, and its answer."""

    asked: float  # on the run's clock
    read: float  # what the worker's `time.perf_counter` showed
    answered: float  # on the run's clock


@dataclass(frozen=True, slots=True)
class WorkerClock:
    """A worker's clock beside the run's."""

    zero: float  # what its `time.perf_counter` shows at the run's start
    uncertainty: float  # seconds, to either side


def worker_clock(round_trips: Iterable[RoundTrip]) -> WorkerClock:
    """What is known of a worker's clock after some questions.

    It was read at some instant between question and answer, so the quickest round trip knows best (Cristian 1989,
    "Probabilistic clock synchronization").
    """
    quickest = min(round_trips, key=lambda trip: trip.answered - trip.asked)
    half = (quickest.answered - quickest.asked) / 2
    return WorkerClock(quickest.read - (quickest.asked + half), half)


def check_clocks(clocks: Iterable[WorkerClock]) -> None:
    """Raises `ClockUnknown` if a clock is known too badly for a test."""
    worst = max(clock.uncertainty for clock in clocks) * 1000
    if worst > MAX_UNCERTAINTY_MS:
        raise ClockUnknown(
            f"a worker's clock is known to within {worst:.1f} ms only, and {MAX_UNCERTAINTY_MS:g} are allowed: of "
            f"{NUM_ROUND_TRIPS} messages to it and back none took less than {2 * worst:.1f} ms"
        )


def known_within(before: WorkerClock, after: WorkerClock) -> float:
    """Seconds by which a clock may have been off between two measurements, if the first of them was gone by."""
    return max(before.uncertainty, abs(after.zero - before.zero) + after.uncertainty)
