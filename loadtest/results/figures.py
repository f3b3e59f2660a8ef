"""The figures of a run: the content of totals.json and report.json, field by field.

Durations end in `_ms` and are milliseconds; rates are per second. Every name here is a key that programs read;
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
    """Answered requests with `fewest` to `most` source tokens."""

    fewest: int
    most: int | None  # None: no limit
    latency_ms: Percentiles
    share_within_objective: float  # of the answered


@dataclass(frozen=True, slots=True)
class Sample:
    """Figures of a set of requests, all due in the measured window."""

    sent: int
    outcomes: dict[str, int]  # of every outcome, including those that did not occur
    reasons: dict[str, int]  # why requests were not answered, the most frequent first
    throughput: float  # requests answered within the window, per second
    goodput: float  # requests of the window answered within their objective, per second of the window
    within_objective: int
    share_within_objective: float | None  # of those that count; None without any
    sentences_per_second: float
    target_tokens_per_second: float | None  # None: not reported by the server
    source_tokens_estimated: float  # share of the answered whose source tokens are estimated from words
    latency_ms: Percentiles | None  # of the answered
    rejected_ms: Percentiles | None
    first_token_ms: Percentiles | None  # of streams
    gap_ms: Percentiles | None  # between the tokens of streams
    phases_ms: dict[str, Percentiles]  # of the answered, by the server's clock; "rest" is the time outside it
    by_length: tuple[LengthBucket, ...]


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The server's metrics during the measured window; None for series it lacks."""

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
    rate: float | None  # requests per second of the scenario; None in a closed loop
    ramp_to: float | None
    users: int | None
    window_seconds: float
    offered_rate: float  # requests due in the window, per second
    lag_ms: Percentiles | None  # delay of the generator behind the due instants
    is_late: bool  # the lag exceeds its limit: the stage is invalid
    all: Sample
    kinds: dict[str, Sample]
    occupancy: Occupancy | None
    histogram: str | None  # latencies of the answered in microseconds, in HdrHistogram's own format

    @property
    def has_one_rate(self) -> bool:
        """Whether the stage measured one offered load: open loop, no ramp, and a generator in time."""
        return self.rate is not None and self.ramp_to is None and not self.is_late and self.window_seconds > 0


@dataclass(frozen=True, slots=True)
class Headline:
    """The run in a few figures, without closed-loop and invalid stages."""

    goodput: float | None  # the best of any stage, requests per second
    goodput_stage: str | None
    knee_rate: float | None  # the highest rate at which the objective is met
    knee_stage: str | None
    is_void: bool
    late_stages: tuple[str, ...]
    generator_cpu_share: float  # of the machine
    guard_share: float | None  # share of the compared answers that equal those of the idle server
    guard_checked: int
    guard_unanswered: dict[str, int] = field(default_factory=dict)  # requests that could not be compared, by reason
    is_interrupted: bool = False
    stages_not_run: tuple[str, ...] = ()  # because of the interruption


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
        """Return the stage with that name, if any."""
        return next((stage for stage in self.stages if stage.name == name), None)


def to_json(totals: Totals) -> str:
    """Return the totals as JSON for `from_json`."""
    return _totals_type().dump_json(totals, indent=2).decode() + "\n"


def from_json(text: str | bytes) -> Totals:
    """Return the totals in the output of `to_json`. Raises pydantic's `ValidationError` for any other text."""
    return _totals_type().validate_json(text)


@cache
def _totals_type() -> TypeAdapter[Totals]:
    return TypeAdapter(Totals)
