"""The folder of a run: its circumstances, its measurements, and the reports made from them.

run.json        RunInfo
records.jsonl   a Record per line
metrics.jsonl   a MetricsSample per line; missing if the server has no /metrics
guard.json      AnswerCheckResult; missing if the answers were not checked
totals.json, report.html, report.md, report.json   computed from the above, at any time again
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from loadtest.results.records import Record, read_records
from loadtest.results.thresholds import NO_THRESHOLDS, Thresholds

RECORDS_FILE = "records.jsonl"

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class StageInfo:
    """A stage as it was run. Times are seconds since the run's start, on the clock of the records."""

    name: str
    rate: float | None  # requests per second; None: closed loop
    users: int | None  # None: open loop
    started: float
    warm_up_ended: float
    sending_ended: float
    drained: float  # the last answer, or the end of waiting
    ramp_to: float | None = None  # the rate at the end, if it changes
    is_search_step: bool = False

    @property
    def window_seconds(self) -> float:
        """Seconds of the measured window."""
        return self.sending_ended - self.warm_up_ended

    def measures(self, record: Record) -> bool:
        """Return whether the record is of this stage and was due within its measured window."""
        return record.stage == self.name and self.warm_up_ended <= record.scheduled < self.sending_ended


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """The generator's machine; also the server's if they share one."""

    cpu: str
    cores: int  # usable by a process
    system: str


@dataclass(frozen=True, slots=True)
class GeneratorInfo:
    """Resources of the load generator, to judge its influence on the measurements."""

    cpu_seconds: float  # of all its processes, while sending and waiting
    wall_seconds: float
    num_processes: int
    nice: int  # lower is more urgent; 0 is the default

    def share_of(self, machine: MachineInfo) -> float:
        """Return the generator's share of the machine's processor time, 0 to 1."""
        return self.cpu_seconds / (self.wall_seconds * machine.cores) if self.wall_seconds else 0.0


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Observations of the server."""

    models: dict[str, JsonValue] | None  # the answer of GET /v1/models; None without it
    cpu_seconds: float | None  # user and system, during the load; None if its process is unknown
    resident_bytes_before: int | None
    resident_bytes_after: int | None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Circumstances of a run: scenario, seed, machine, versions, stages."""

    scenario: dict[str, JsonValue]  # `Scenario.model_dump`, with numbers for its rates
    seed: int
    url: str
    label: str
    started_at: str  # UTC, ISO 8601
    versions: dict[str, str]  # of Python and the packages that send
    machine: MachineInfo
    generator: GeneratorInfo
    server: ServerInfo
    knee: float | None  # requests per second; None if neither searched nor given
    stages: tuple[StageInfo, ...]
    thresholds: Thresholds = NO_THRESHOLDS  # given with the run; a report may use others
    interrupted: bool = False  # the last stage may be cut short, and others may be missing

    @property
    def stages_not_run(self) -> tuple[str, ...]:
        """Names of the scenario's stages that were not run."""
        planned = self.scenario.get("stages")
        names = [stage.get("name") for stage in planned if isinstance(stage, dict)] if isinstance(planned, list) else []
        run = {stage.name for stage in self.stages}
        return tuple(str(name) for name in names if name not in run)


@dataclass(frozen=True, slots=True)
class MetricsSample:
    """The useful series of /metrics at one instant.

    Names are those of the server, with the suffixes _sum and _count for histograms, summed over all labels;
    `kvasir_requests_total` has one series per outcome, such as `kvasir_requests_total.ok`.
    """

    at: float  # seconds since the run's start
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """A request with different answers under load and on the idle server."""

    number: int
    stage: str
    text: str
    offline: str
    under_load: str


@dataclass(frozen=True, slots=True)
class AnswerCheckResult:
    """Result of comparing answers under load with those of the idle server."""

    checked: int
    identical: int
    population: int  # answered requests from which the sample was drawn
    share: float  # identical / checked; 1 if nothing was checked
    different: tuple[Difference, ...]  # at most 20
    unanswered: dict[str, int] = field(default_factory=dict)  # not answered by the idle server, by reason


class BadRunFolder(ValueError):
    """A folder without a run, or with an unreadable file."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run."""

    path: Path

    @property
    def records_file(self) -> Path:
        """Path of the records."""
        return self.path / RECORDS_FILE

    @property
    def metrics_file(self) -> Path:
        """Path of the samples of the server's metrics, which may not exist."""
        return self.path / "metrics.jsonl"

    def info(self) -> RunInfo:
        """Return the circumstances of the run. Raises `BadRunFolder`."""
        return self._read("run.json", _run_info_type())

    def write_info(self, info: RunInfo) -> None:
        """Write run.json."""
        self._write("run.json", _run_info_type().dump_json(info, indent=2))

    def records(self) -> Iterator[Record]:
        """Iterate over the records. Raises `BadRunFolder` without their file, `BadRecord` at an invalid line."""
        if not self.records_file.is_file():
            raise BadRunFolder(f"{self.path} has no records.jsonl")
        return read_records(self.records_file)

    def metrics(self) -> tuple[MetricsSample, ...]:
        """Return the samples of the server's metrics in the order of time; empty for a server without them."""
        if not self.metrics_file.is_file():
            return ()
        with self.metrics_file.open(encoding="utf-8") as lines:
            return tuple(_metrics_type().validate_json(line) for line in lines)

    def answer_check(self) -> AnswerCheckResult | None:
        """Return the result of the answer check; None if there was none."""
        return self._read("guard.json", _answer_check_type()) if (self.path / "guard.json").is_file() else None

    def write_answer_check(self, result: AnswerCheckResult) -> None:
        """Write guard.json."""
        self._write("guard.json", _answer_check_type().dump_json(result, indent=2))

    def _read(self, name: str, kind: TypeAdapter[Value]) -> Value:
        path = self.path / name
        try:
            return kind.validate_json(path.read_bytes())
        except OSError as error:
            raise BadRunFolder(f"{self.path} contains no load test: {name}: {error.strerror}") from error
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(str(part) for part in problem["loc"])
            raise BadRunFolder(f"{path}: {place}: {problem['msg']}") from error

    def _write(self, name: str, content: bytes) -> None:
        (self.path / name).write_bytes(content + b"\n")


@cache
def _run_info_type() -> TypeAdapter[RunInfo]:
    return TypeAdapter(RunInfo)


@cache
def _metrics_type() -> TypeAdapter[MetricsSample]:
    return TypeAdapter(MetricsSample)


@cache
def _answer_check_type() -> TypeAdapter[AnswerCheckResult]:
    return TypeAdapter(AnswerCheckResult)
