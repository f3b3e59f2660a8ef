"""Results of a comparison: values, ratios, JSON and Markdown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from pydantic import TypeAdapter

from benchmarks.servers.running import describe
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
    settings: dict[str, str] = field(default_factory=dict)
    capacity: float | None = None
    tried: dict[str, float] = field(default_factory=dict)
    knees: list[KneeFound] = field(default_factory=list)
    loads: list[LoadFound] = field(default_factory=list)
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


_NOTHING = "-"

Cell = Callable[[Sequence[LoadFound]], str]  # of at least one load


def render(comparison: Comparison) -> str:
    """Return all tables with their explanations."""
    first = comparison.servers[0]
    machine = comparison.machine
    lines = [
        f"# {first.name} and {', '.join(server.name for server in comparison.servers[1:]) or 'no other server'}",
        "",
        f"{comparison.date}, {machine.cpu}, {machine.cores} cores that server and load generator share; scenario "
        f"`{comparison.scenario}`, seed {comparison.seed}. In time: {comparison.objective}.",
        "",
        *_table(
            ("server", "knee, /s", f"{first.name} / it", "best goodput, /s", f"{first.name} / it", "settings"),
            [_summary(first, server) for server in comparison.servers],
        ),
        "",
        "Knee: the highest sustained rate of requests, the median of the rounds. Best goodput: requests per second "
        "answered in time, at the best rate of each round. Ratios are within a round: median (minimum - maximum).",
        "",
        "## The same loads for all servers",
        "",
        "Goodput, requests per second (share of all requests in time; share rejected).",
        "",
        *_by_rate(comparison, _goodput),
        "",
        "Latency of answered requests from the instant they were due, ms: p50 / p99; of rejections: p99.",
        "",
        *_by_rate(comparison, _latency),
        "",
        "Cores in use: server + load generator, which shares the cores with every server. Target tokens per "
        "second show which server generates more per answer.",
        "",
        *_by_rate(comparison, _cores),
        "",
        *(f"* {note}" for note in _notes(comparison)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _summary(first: ServerFound, server: ServerFound) -> list[str]:
    best = [goodput for each in server.knees if (goodput := server.goodput_of(each.round)) is not None]
    is_first = server is first
    return [
        server.name,
        _spread([each.knee or 0.0 for each in server.knees]) + (" (!)" if _is_late(server) else ""),
        "" if is_first else _ratio(knee_ratio(first, server)),
        _spread(best),
        "" if is_first else _ratio(goodput_ratio(first, server)),
        server.not_run or describe(server.settings),
    ]


def _by_rate(comparison: Comparison, cell: Cell) -> list[str]:
    rows = [
        [f"{rate:g}/s", *(_cell(server.loads_at(rate), cell) for server in comparison.servers)]
        for rate in comparison.rates
    ]
    return _table(("offered", *(server.name for server in comparison.servers)), rows)


def _cell(loads: Sequence[LoadFound], cell: Cell) -> str:
    if not loads:
        return _NOTHING
    late = " (!)" if any(load.is_late for load in loads) else ""
    return cell(loads) + late


def _goodput(loads: Sequence[LoadFound]) -> str:
    in_time, rejected = _mean([load.share_in_time for load in loads]), _mean([load.rejected_share for load in loads])
    refused = f"; {rejected:.0%}" if rejected else ""
    return f"{_mean([load.goodput for load in loads]):.1f} ({in_time:.1%}{refused})"


def _latency(loads: Sequence[LoadFound]) -> str:
    p50, p99 = (_worst([load.p50_ms for load in loads]), _worst([load.p99_ms for load in loads]))
    rejected = _worst([load.rejected_p99_ms for load in loads])
    return f"{p50} / {p99}" + ("" if rejected == _NOTHING else f"; {rejected}")


def _cores(loads: Sequence[LoadFound]) -> str:
    known = [load.server_cores for load in loads if load.server_cores is not None]
    tokens = [load.target_tokens_per_second for load in loads if load.target_tokens_per_second is not None]
    server = f"{_mean(known):.2f}" if known else "?"
    tokens_per_second = f"; {_mean(tokens):.0f} tokens/s" if tokens else ""
    return f"{server} + {_mean([load.generator_cores for load in loads]):.2f}{tokens_per_second}"


def _is_late(server: ServerFound) -> bool:
    return any(each.is_late for each in server.knees)


def _notes(comparison: Comparison) -> list[str]:
    late = any(_is_late(server) or any(load.is_late for load in server.loads) for server in comparison.servers)
    marked = ["(!): the generator was late, so the result is invalid; measure again."] if late else []
    return [*marked, *comparison.notes]


def _spread(values: Sequence[float]) -> str:
    if not values:
        return _NOTHING
    if not any(values):
        return "none"
    return f"{median(values):.3g}" + (f" ({min(values):.3g} - {max(values):.3g})" if len(values) > 1 else "")


def _ratio(found: Ratio | None) -> str:
    return _NOTHING if found is None else f"{found.median:.2f} ({found.least:.2f} - {found.most:.2f})"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _worst(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{max(known):.0f}" if known else _NOTHING


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
