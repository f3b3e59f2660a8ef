"""Messages between the coordinator and the workers of a test, sent as Locust's messages."""

from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter

from loadtest.coordination.answer_check import SampledAnswer

# From the coordinator to workers, and back.
PREPARE, CLOCK, GO, STOP = "kvasir_prepare", "kvasir_clock", "kvasir_go", "kvasir_stop"
PREPARED, CLOCK_READ, RECORDS = "kvasir_prepared", "kvasir_clock_read", "kvasir_records"
DONE, FAILED = "kvasir_done", "kvasir_failed"
FROM_WORKERS = (PREPARED, CLOCK_READ, RECORDS, DONE, FAILED)


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


@dataclass(frozen=True, slots=True)
class StageDone:
    """Result of one worker's part of a stage. Sent as a dictionary, after the last records."""

    worker: int
    sending_ended: float  # seconds since the run's start, as all times
    drained: float
    cpu_seconds: float
    nice: int
    sampled: tuple[SampledAnswer, ...]  # answers to check
    population: int  # number of answers they were drawn from


def assignment_of(data: dict[str, object]) -> StageAssignment:
    """Return the assignment in a message."""
    return _assignment_type().validate_python(data)


def done_of(data: dict[str, object]) -> StageDone:
    """Return the result of a stage in a message."""
    return _done_type().validate_python(data)


@cache
def _assignment_type() -> TypeAdapter[StageAssignment]:
    return TypeAdapter(StageAssignment)


@cache
def _done_type() -> TypeAdapter[StageDone]:
    return TypeAdapter(StageDone)
