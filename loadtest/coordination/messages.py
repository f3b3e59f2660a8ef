"""What the conductor and the workers of a test tell each other, in Locust's messages."""

from dataclasses import dataclass
from functools import cache

from pydantic import TypeAdapter

from loadtest.coordination.answer_check import SampledAnswer

# From the conductor to workers, and back.
PREPARE, CLOCK, GO, STOP = "kvasir_prepare", "kvasir_clock", "kvasir_go", "kvasir_stop"
PREPARED, CLOCK_READ, RECORDS = "kvasir_prepared", "kvasir_clock_read", "kvasir_records"
DONE, FAILED = "kvasir_done", "kvasir_failed"
FROM_WORKERS = (PREPARED, CLOCK_READ, RECORDS, DONE, FAILED)


@dataclass(frozen=True, slots=True)
class StageAssignment:
    """What a worker has to know of a stage. It travels as a dictionary."""

    scenario: str  # JSON
    stage: str  # JSON
    url: str
    seed: int
    worker: int  # it sends the requests numbered `worker`, `worker + num_workers`, and so on
    num_workers: int
    sample_size: int  # of answers kept for the guard


@dataclass(frozen=True, slots=True)
class StageDone:
    """What a worker says when its part of a stage is over. It travels as a dictionary, after the last records."""

    worker: int
    sending_ended: float  # seconds since the run's start, as all times
    drained: float
    cpu_seconds: float
    nice: int
    sampled: tuple[SampledAnswer, ...]  # for the guard
    population: int  # answers that those were drawn from


def assignment_of(data: dict[str, object]) -> StageAssignment:
    """The order that a message holds."""
    return _assignment_type().validate_python(data)


def done_of(data: dict[str, object]) -> StageDone:
    """The end of a stage that a message holds."""
    return _done_type().validate_python(data)


@cache
def _assignment_type() -> TypeAdapter[StageAssignment]:
    return TypeAdapter(StageAssignment)


@cache
def _done_type() -> TypeAdapter[StageDone]:
    return TypeAdapter(StageDone)
