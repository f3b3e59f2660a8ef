"""Results of a comparison, and their JSON."""

from dataclasses import dataclass, field
from statistics import median

from pydantic import TypeAdapter

from benchmarks.servers.answers import Agreement
from loadtest.results.run_folder import MachineInfo


@dataclass(frozen=True, slots=True)
class KneeFound:
    """Result of one search for the knee. `knee` is None if no rate was sustained. Rates are requests per second."""

    round: int
    knee: float | None
    goodput_at_knee: float
    best_goodput: float  # of any step
    is_late: bool = False  # the generator was late in some steps, which do not count


@dataclass(frozen=True, slots=True)
class LoadFound:
    """Result of one offered load. Cores are processor seconds per second."""

    round: int
    rate: float
    goodput: float
    share_in_time: float
    p50_ms: float | None
    p99_ms: float | None
    rejected_p99_ms: float | None
    rejected_share: float
    target_tokens_per_second: float | None
    server_cores: float | None
    generator_cores: float
    is_late: bool  # the generator was late: the result is invalid


@dataclass(slots=True)
class ServerFound:
    """All results of one server; `not_run` is the reason for missing ones."""

    name: str
    protocol: str
    settings: dict[str, str] = field(default_factory=dict)
    capacity: float | None = None
    tried: dict[str, float] = field(default_factory=dict)
    knees: list[KneeFound] = field(default_factory=list)
    loads: list[LoadFound] = field(default_factory=list)
    agreements: list[Agreement] = field(default_factory=list)
    not_run: str | None = None

    @property
    def knee(self) -> float | None:
        """Median of the knees of all rounds; a round without a knee counts as 0. None if no round had one."""
        found = [each.knee or 0.0 for each in self.knees]
        return (median(found) or None) if found else None

    def goodput_of(self, round_number: int) -> float | None:
        """Return the best goodput of a round's steps and loads that were sent in time."""
        steps = [each.best_goodput for each in self.knees if each.round == round_number]
        loads = [each.goodput for each in self.loads if each.round == round_number and not each.is_late]
        return max([*steps, *loads], default=None)

    def loads_at(self, rate: float) -> list[LoadFound]:
        """Return the loads with this rate in the order of rounds."""
        return [load for load in self.loads if load.rate == rate]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratio of one server's figure to another's over all rounds: median, minimum and maximum."""

    median: float
    least: float
    most: float


@dataclass(slots=True)
class Comparison:
    """A comparison; the first server is compared with the others."""

    scenario: str
    objective: str
    date: str
    machine: MachineInfo
    versions: dict[str, str]
    seed: int
    servers: list[ServerFound] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        """Rates offered to all servers."""
        return sorted({load.rate for server in self.servers for load in server.loads})


def ratio(pairs: list[tuple[float | None, float | None]]) -> Ratio | None:
    """Return the ratio of pairs of figures, one per round; None if no round has both and a second above 0."""
    ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
    return Ratio(median(ratios), min(ratios), max(ratios)) if ratios else None


def goodput_ratio(first: ServerFound, other: ServerFound) -> Ratio | None:
    """Return the ratio of the best goodputs."""
    rounds = sorted({each.round for each in first.knees})
    return ratio([(first.goodput_of(number), other.goodput_of(number)) for number in rounds])


def knee_ratio(first: ServerFound, other: ServerFound) -> Ratio | None:
    """Return the ratio of the knees. A round in which the first sustained no rate counts as 0.

    A round in which the other sustained no rate has no ratio, because it would be unbounded.
    """
    others = {each.round: each.knee for each in other.knees}
    return ratio([(each.knee or 0.0, others.get(each.round)) for each in first.knees])


def to_json(comparison: Comparison) -> str:
    """Return the comparison as JSON."""
    return TypeAdapter(Comparison).dump_json(comparison, indent=2).decode() + "\n"
