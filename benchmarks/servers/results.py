"""What a comparison found: values, and JSON of them."""

from dataclasses import dataclass, field
from statistics import median

from pydantic import TypeAdapter

from benchmarks.servers.answers import Agreement
from loadtest.results.run_folder import MachineInfo


@dataclass(frozen=True, slots=True)
class KneeFound:
    """One search for the knee. `knee` is None if no rate was sustained. Rates are requests a second."""

    round: int
    knee: float | None
    goodput_at_knee: float
    best_goodput: float  # of any step
    is_late: bool = False  # the generator kept no time in some of it; those steps count for nothing


@dataclass(frozen=True, slots=True)
class LoadFound:
    """One offered load. Cores are processor seconds a second."""

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
    is_late: bool  # the generator kept no time, so this says nothing of the server


@dataclass(slots=True)
class ServerFound:
    """All of one server; `not_run` says why there is nothing or not everything."""

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
        """The median of the knees of all rounds, None if no round had one. A round without counts as none sustained."""
        found = [each.knee or 0.0 for each in self.knees]
        return (median(found) or None) if found else None

    def goodput_of(self, round_number: int) -> float | None:
        """The best goodput of any step or load of a round that the generator sent in time."""
        steps = [each.best_goodput for each in self.knees if each.round == round_number]
        loads = [each.goodput for each in self.loads if each.round == round_number and not each.is_late]
        return max([*steps, *loads], default=None)

    def loads_at(self, rate: float) -> list[LoadFound]:
        """The loads of this rate, round by round."""
        return [load for load in self.loads if load.rate == rate]


@dataclass(frozen=True, slots=True)
class Ratio:
    """One server's figure over another's, round by round: the median, the least and the most."""

    median: float
    least: float
    most: float


@dataclass(slots=True)
class Comparison:
    """A whole comparison; the first server is the one that others are compared with."""

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
        """The loads that were offered to all."""
        return sorted({load.rate for server in self.servers for load in server.loads})


def ratio(pairs: list[tuple[float | None, float | None]]) -> Ratio | None:
    """Of pairs of figures, one a round; None if no round has both and the second is more than nothing."""
    ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs]
    return Ratio(median(ratios), min(ratios), max(ratios)) if ratios else None


def goodput_ratio(first: ServerFound, other: ServerFound) -> Ratio | None:
    """The best goodput of the first over the other's."""
    rounds = sorted({each.round for each in first.knees})
    return ratio([(first.goodput_of(number), other.goodput_of(number)) for number in rounds])


def knee_ratio(first: ServerFound, other: ServerFound) -> Ratio | None:
    """The knee of the first over the other's. A round in which the first sustained nothing counts as 0.

    One in which the other sustained nothing has no ratio: it would have no bound.
    """
    others = {each.round: each.knee for each in other.knees}
    return ratio([(each.knee or 0.0, others.get(each.round)) for each in first.knees])


def to_json(comparison: Comparison) -> str:
    """All of it, for programs."""
    return TypeAdapter(Comparison).dump_json(comparison, indent=2).decode() + "\n"
