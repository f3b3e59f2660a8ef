"""Loads of a comparison, and the search for a server's settings with the best goodput."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.progress import log_progress
from benchmarks.servers.running import InterleavedRuns, describe
from benchmarks.servers.server_kinds import ServerKind, Settings
from loadtest.results.run_folder import RunFolder
from loadtest.results.totals import totals
from loadtest.workload.scenario import Scenario, ScenarioInvalid, Search, Stage


def requests_for(scenario: Scenario, beam_size: int | None) -> Scenario:
    """Return a scenario with the same kinds of request, all with the beam size if given.

    Its stages are replaced later. Raises `ScenarioInvalid` for a protocol that the other servers do not have.
    """
    for kind in scenario.kinds:
        if kind.protocol != "native":
            raise ScenarioInvalid(f"the other servers do not support the protocol {kind.protocol} of kind {kind.name}")
    kinds = [kind.model_copy(update={"beam_size": beam_size or kind.beam_size}) for kind in scenario.kinds]
    # A scenario needs stages or a search; the search is a placeholder.
    return scenario.model_copy(update={"kinds": tuple(kinds), "search": Search(), "stages": ()})


def closed_loop(requests: Scenario, users: int, seconds: float, warm_up_seconds: float) -> Scenario:
    """Return a closed loop of that many users: it measures capacity, whatever the latency."""
    return _of_one(requests, Stage(name="closed loop", users=users, seconds=seconds, warm_up_seconds=warm_up_seconds))


def ramp(requests: Scenario, lowest: float, highest: float, seconds: float) -> Scenario:
    """Return a ramp from the lowest to the highest rate."""
    return _of_one(requests, Stage(name="ramp", rate=lowest, ramp_to=highest, seconds=seconds))


def at_rate(requests: Scenario, name: str, rate: float, seconds: float, warm_up_seconds: float) -> Scenario:
    """Return a stage with a constant rate."""
    return _of_one(requests, Stage(name=name, rate=rate, seconds=seconds, warm_up_seconds=warm_up_seconds))


def search(requests: Scenario, start_rate: float, factor: float, bisections: int, seconds: float) -> Scenario:
    """Return a search for the knee."""
    settings = Search(
        start_rate=start_rate, factor=factor, bisections=bisections, seconds=seconds, warm_up_seconds=seconds / 5
    )
    return requests.model_copy(update={"search": settings, "stages": ()})


def _of_one(requests: Scenario, stage: Stage) -> Scenario:
    return requests.model_copy(update={"search": None, "stages": (stage,)})


USERS = 32  # enough to saturate each of these servers
RAMP = (0.1, 1.3)  # shares of the capacity: from idle to overload
OVERLOAD = 1.5
SLOW_REQUESTS = 120  # per ramp; it may last up to twice as long for them

Score = Callable[[Settings], float]


@dataclass(frozen=True, slots=True)
class Effort:
    """Durations of measurements in seconds, including warm-up."""

    closed_loop_seconds: float = 10.0
    warm_up_seconds: float = 2.0
    ramp_seconds: float = 20.0
    overload_seconds: float = 15.0


@dataclass(slots=True)
class Tuned:
    """Result of tuning. `capacity` is requests per second of closed loops with the initial settings.

    `tried` maps settings to the number of requests answered in time.
    """

    settings: dict[str, str]
    capacity: float
    tried: dict[str, float] = field(default_factory=dict)


def capacity(
    interleaved: InterleavedRuns, kind: ServerKind, settings: Settings, requests: Scenario, folder: Path, effort: Effort
) -> float:
    """Return the requests per second answered in closed loops. Raises `ServerFailed` or `LoadTestFailed`."""
    scenario = closed_loop(requests, USERS, effort.closed_loop_seconds, effort.warm_up_seconds)
    run = interleaved.measure(kind, settings, scenario, folder)
    return totals(run).stages[0].all.throughput


def tune(
    interleaved: InterleavedRuns,
    kind: ServerKind,
    settings: Settings,
    requests: Scenario,
    folder: Path,
    effort: Effort,
    may_go_on: Callable[[], bool],
    is_relative_tuned: bool = False,
) -> Tuned:
    """Try the settings, dimension by dimension from `settings` on, while `may_go_on` returns true.

    The score of a setting is the number of requests answered in time while the load rises from idle to overload. It
    rewards capacity and speed. All settings receive the same requests at the same instants. Raises `ServerFailed` or
    `LoadTestFailed` if a setting fails.
    """
    tuned = Tuned(dict(settings), capacity(interleaved, kind, settings, requests, folder / "closed-loop", effort))
    lowest, highest = (share * tuned.capacity for share in RAMP)
    seconds = min(max(effort.ramp_seconds, 2 * SLOW_REQUESTS / (lowest + highest)), 2 * effort.ramp_seconds)

    def on_the_ramp(tried: Settings) -> float:
        rising = ramp(requests, lowest, highest, seconds)
        return _in_time(interleaved.measure(kind, tried, rising, folder / f"ramp-{len(tuned.tried) + 1}"))

    def beyond(tried: Settings) -> float:
        stage = at_rate(
            requests, "overload", OVERLOAD * tuned.capacity, effort.overload_seconds, effort.warm_up_seconds
        )
        return _in_time(interleaved.measure(kind, tried, stage, folder / f"overload-{len(tuned.tried) + 1}"))

    # The bounded server has the best settings of its unbounded relative, except for the limit.
    for dimension in () if is_relative_tuned else kind.dimensions:
        _choose(tuned, kind.name, dimension, on_the_ramp, may_go_on)
    _choose(tuned, kind.name, kind.overload_choices, beyond, may_go_on)
    return tuned


def _choose(
    tuned: Tuned, name: str, choices: tuple[Settings, ...], score: Score, may_go_on: Callable[[], bool]
) -> None:
    """Add the best of the choices to the settings."""
    scores: dict[str, tuple[float, dict[str, str]]] = {}
    for choice in choices:
        if not may_go_on():
            break
        candidate = tuned.settings | dict(choice)
        label = describe(candidate)
        # Settings tried in another dimension are not tried again.
        found = tuned.tried[label] if label in tuned.tried else score(candidate)
        tuned.tried[label] = found
        scores[label] = found, candidate
        log_progress(f"  {name}: {found:.0f} in time with {label}")
    if scores:
        tuned.settings = max(scores.values(), key=lambda pair: pair[0])[1]


def _in_time(run: RunFolder) -> float:
    return float(sum(stage.all.within_objective for stage in totals(run).stages))
