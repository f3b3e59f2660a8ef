"""The folder of a run: what was run, what was measured, and what was made of it.

run.json        RunInfo
records.jsonl   a Record a line
metrics.jsonl   a MetricsSample a line; not there if the server has no /metrics
guard.json      AnswerCheckResult; not there if the answers were not checked
totals.json, report.html, report.md, report.json   made from the above, at any time again
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
    rate: float | None  # requests a second; None: closed loop
    users: int | None  # None: open loop
    started: float
    warm_up_ended: float
    sending_ended: float
    drained: float  # the last answer was there, or nobody waited any longer
    ramp_to: float | None = None  # the rate at the end, where it changes
    is_search_step: bool = False  # a step of the search for the knee
    clock_uncertainty: float = 0.0  # seconds that a worker's clock may have differed from the run's; 0 for one process

    @property
    def window_seconds(self) -> float:
        """Seconds of the measured window."""
        return self.sending_ended - self.warm_up_ended

    def measures(self, record: Record) -> bool:
        """Whether the record is of this stage and was due within its measured window."""
        return record.stage == self.name and self.warm_up_ended <= record.scheduled < self.sending_ended


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """The machine that the generator ran on; the server's too where both share one."""

    cpu: str
    cores: int  # that a process may use
    system: str


@dataclass(frozen=True, slots=True)
class GeneratorInfo:
    """What the load generator itself took, so that its part in what was measured can be judged."""

    cpu_seconds: float  # of all its processes, while it sent and waited
    wall_seconds: float
    num_processes: int
    nice: int  # less is more urgent; 0 is as urgent as everybody

    def share_of(self, machine: MachineInfo) -> float:
        """The part of the machine's processor time that the generator took, 0 to 1."""
        return self.cpu_seconds / (self.wall_seconds * machine.cores) if self.wall_seconds else 0.0


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What is known of the server."""

    models: dict[str, JsonValue] | None  # the answer of GET /v1/models; None for servers without
    cpu_seconds: float | None  # user and system, while the load ran; None if its process is not known
    resident_bytes_before: int | None
    resident_bytes_after: int | None


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What was run, where and when."""

    scenario: dict[str, JsonValue]  # `Scenario.model_dump`, with numbers for its rates
    seed: int
    url: str
    label: str
    started_at: str  # UTC, ISO 8601
    versions: dict[str, str]  # of Python and the packages that took part
    machine: MachineInfo
    generator: GeneratorInfo
    server: ServerInfo
    knee: float | None  # requests a second; None if neither searched nor told
    stages: tuple[StageInfo, ...]
    thresholds: Thresholds = NO_THRESHOLDS  # that were given with the run; a report can be asked for others
    interrupted: bool = False  # it was broken off: the last stage may be cut short, and others may be missing

    @property
    def stages_not_run(self) -> tuple[str, ...]:
        """The names of the scenario's stages that the run did not get to."""
        planned = self.scenario.get("stages")
        names = [stage.get("name") for stage in planned if isinstance(stage, dict)] if isinstance(planned, list) else []
        run = {stage.name for stage in self.stages}
        return tuple(str(name) for name in names if name not in run)


@dataclass(frozen=True, slots=True)
class MetricsSample:
    """The useful series of /metrics at one instant.

    Names are those of the server's page, with the suffixes _sum and _count for histograms, summed over all labels;
    `kvasir_requests_total` is there for each outcome, as `kvasir_requests_total.ok`.
    """

    at: float  # seconds since the run's start
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """A request that was answered otherwise under load than alone."""

    number: int
    stage: str
    text: str
    offline: str
    under_load: str


@dataclass(frozen=True, slots=True)
class AnswerCheckResult:
    """Answers under load beside the answers to the same requests from an idle server."""

    checked: int
    identical: int
    population: int  # answered requests that the sample was drawn from
    share: float  # identical / checked; 1 if nothing was checked
    different: tuple[Difference, ...]  # 20 at most
    unanswered: dict[str, int] = field(default_factory=dict)  # by the idle server, for what reason: not compared


class BadRunFolder(ValueError):
    """A folder that is no run, or a file of it that cannot be read."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run, by name."""

    path: Path

    @property
    def records_file(self) -> Path:
        """Where the records are."""
        return self.path / RECORDS_FILE

    @property
    def metrics_file(self) -> Path:
        """Where the samples of the server's metrics are, if it has any."""
        return self.path / "metrics.jsonl"

    def info(self) -> RunInfo:
        """What was run. Raises `BadRunFolder`."""
        return self._read("run.json", _run_info_type())

    def write_info(self, info: RunInfo) -> None:
        """Writes run.json."""
        self._write("run.json", _run_info_type().dump_json(info, indent=2))

    def records(self) -> Iterator[Record]:
        """Every record. Raises `BadRunFolder` if there is no file of them, `BadRecord` at a broken line."""
        if not self.records_file.is_file():
            raise BadRunFolder(f"{self.path} has no records.jsonl")
        return read_records(self.records_file)

    def metrics(self) -> tuple[MetricsSample, ...]:
        """The samples of the server's metrics, in the order of time; empty for a server without."""
        if not self.metrics_file.is_file():
            return ()
        with self.metrics_file.open(encoding="utf-8") as lines:
            return tuple(_metrics_type().validate_json(line) for line in lines)

    def answer_check(self) -> AnswerCheckResult | None:
        """What the check of the answers gave; None if there was none."""
        return self._read("guard.json", _answer_check_type()) if (self.path / "guard.json").is_file() else None

    def write_answer_check(self, result: AnswerCheckResult) -> None:
        """Writes guard.json."""
        self._write("guard.json", _answer_check_type().dump_json(result, indent=2))

    def _read(self, name: str, kind: TypeAdapter[Value]) -> Value:
        path = self.path / name
        try:
            return kind.validate_json(path.read_bytes())
        except OSError as error:
            raise BadRunFolder(f"{self.path} is not the folder of a load test: {name}: {error.strerror}") from error
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
