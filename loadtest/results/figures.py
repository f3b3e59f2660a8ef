"""The figures of a run, as values: what totals.json and report.json hold, field by field.

Durations are in milliseconds and say so, rates are per second. Every name here is a key that programs read:
docs/load-test-reports.md explains each.
"""

from dataclasses import dataclass, field
from functools import cache

from pydantic import TypeAdapter

from loadtest.results.objective import Objective
from loadtest.results.percentiles import Percentiles

FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class LengthBucket:
    """The answered requests with `fewest` to `most` source tokens."""

    fewest: int
    most: int | None  # None: no bound
    latency_ms: Percentiles
    share_within_objective: float  # of the answered


@dataclass(frozen=True, slots=True)
class Sample:
    """What became of a set of requests, all that were due in the measured window."""

    sent: int
    outcomes: dict[str, int]  # of every outcome, also those that did not occur
    reasons: dict[str, int]  # why requests were not answered, the most frequent first
    throughput: float  # requests answered within the window, a second
    goodput: float  # requests of the window answered within their objective, a second of the window
    within_objective: int
    share_within_objective: float | None  # of all that count; None if none does
    sentences_per_second: float
    target_tokens_per_second: float | None  # None: the server does not say
    source_tokens_estimated: float  # share of the answered whose source tokens are guessed from words
    latency_ms: Percentiles | None  # of the answered
    rejected_ms: Percentiles | None
    first_token_ms: Percentiles | None  # of streams
    gap_ms: Percentiles | None  # between the tokens of streams
    phases_ms: dict[str, Percentiles]  # of the answered, by the server's own clock; "rest" is what it does not see
    by_length: tuple[LengthBucket, ...]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What the server's metrics said during the measured window; None where it has no such series."""

    num_samples: int
    mean_waiting: float | None
    max_waiting: float | None
    mean_running: float | None
    rows_per_step: float | None
    steps_per_second: float | None
    step_ms: float | None
    rows_in_use: float | None  # mean share, 0 to 1


@dataclass(frozen=True, slots=True)
class StageTotals:
    """One stage of the scenario."""

    name: str
    is_closed_loop: bool
    is_search_step: bool
    rate: float | None  # requests a second that the scenario asks for; None in a closed loop
    ramp_to: float | None
    users: int | None
    window_seconds: float
    offered_rate: float  # requests that were due in the window, a second
    lag_ms: Percentiles | None  # how late the generator sent what was due
    clock_uncertainty_ms: float  # by which the clocks of workers may have differed; 0 if one process sent
    is_late: bool  # one of the two is so much that the stage says nothing of the server
    all: Sample
    kinds: dict[str, Sample]
    occupancy: Occupancy | None
    histogram: str | None  # latencies of the answered in microseconds, in HdrHistogram's own format

    @property
    def has_one_rate(self) -> bool:
        """Whether the stage says something of one offered load: open loop, no ramp, and the generator kept up."""
        return self.rate is not None and self.ramp_to is None and not self.is_late and self.window_seconds > 0


@dataclass(frozen=True, slots=True)
class Headline:
    """The run in a few figures. Closed-loop stages and stages that were sent late have no part in it."""

    goodput: float | None  # the best of any stage, requests a second
    goodput_stage: str | None
    knee_rate: float | None  # the highest rate at which the objective is met
    knee_stage: str | None
    is_void: bool
    late_stages: tuple[str, ...]
    generator_cpu_share: float  # of the machine
    guard_share: float | None  # of the answers compared with those of the idle server that were the same
    guard_checked: int
    guard_unanswered: dict[str, int] = field(default_factory=dict)  # requests that could not be compared, by reason
    is_interrupted: bool = False  # the run was broken off
    stages_not_run: tuple[str, ...] = ()  # of the scenario, for that


@dataclass(frozen=True, slots=True)
class Totals:
    """All figures of a run."""

    format_version: int
    label: str
    scenario: str
    seed: int
    url: str
    started_at: str
    objective: Objective
    headline: Headline
    stages: tuple[StageTotals, ...]

    def stage(self, name: str | None) -> StageTotals | None:
        """The stage of that name."""
        return next((stage for stage in self.stages if stage.name == name), None)


def to_json(totals: Totals) -> str:
    """The totals as JSON; `from_json` gives them back."""
    return _totals_type().dump_json(totals, indent=2).decode() + "\n"


def from_json(text: str | bytes) -> Totals:
    """The totals that `to_json` wrote. Raises pydantic's `ValidationError` for any other text."""
    return _totals_type().validate_json(text)


@cache
def _totals_type() -> TypeAdapter[Totals]:
    return TypeAdapter(Totals)
