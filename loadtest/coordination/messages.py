"""Messages between the coordinator and the workers of a test, sent as Locust's messages."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from loadtest.coordination.answer_check import SampledAnswer

STAGE, STOP = "kvasir_stage", "kvasir_stop"  # from the coordinator
RECORDS, DONE, FAILED = FROM_WORKERS = ("kvasir_records", "kvasir_done", "kvasir_failed")


@dataclass(frozen=True, slots=True)
class StageAssignment:
    """One worker's part of a stage. Sent as a dictionary."""

    scenario: str  # JSON
    stage: str  # JSON
    url: str
    seed: int
    worker: int  # sends requests number `worker`, `worker + num_workers`, and so on
    num_workers: int
    sample_size: int  # of the answers to check
    now: float  # seconds since the run's start at which this was sent
    at: float  # start of the stage, on the same clock


@dataclass(frozen=True, slots=True)
class StageDone:
    """Result of one worker's part of a stage. Sent as a dictionary, after the last records."""

    worker: int
    started: float  # seconds since the run's start, as all times
    sending_ended: float
    drained: float
    cpu_seconds: float
    nice: int
    sampled: tuple[SampledAnswer, ...]  # answers to check
    population: int  # number of answers they were drawn from


def clock_from(now: float) -> Callable[[], float]:
    """Return the clock of a run whose time is `now`, in seconds since its start.

    Each worker has its own: it begins with the time in a message, and so differs from the coordinator's by the delay of
    the message. Lag and latency are differences of one worker's clock.
    """
    zero = time.perf_counter() - now
    return lambda: time.perf_counter() - zero
