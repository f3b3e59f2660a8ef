"""The settings that suit a server best, for goodput."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.progress import log_progress
from benchmarks.servers.interleaved_runs import InterleavedRuns, describe
from benchmarks.servers.loads import at_rate, closed_loop, ramp
from benchmarks.servers.server_kinds import ServerKind, Settings
from loadtest.results.run_folder import RunFolder
from loadtest.results.totals import totals
from loadtest.workload.scenario import Scenario

USERS = 32  # enough to keep any of these servers busy
RAMP = (0.1, 1.3)  # of what closed loops get through: from idle to more than can be done
OVERLOAD = 1.5
SLOW_REQUESTS = 120  # that a ramp should have; it may last twice as long for them

Score = Callable[[Settings], float]


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is measured, in seconds, the part before anything counts included."""

    closed_loop_seconds: float = 10.0
    warm_up_seconds: float = 2.0
    ramp_seconds: float = 20.0
    overload_seconds: float = 15.0


@dataclass(slots=True)
class Tuned:
    """What was chosen, from what. `capacity` is requests a second of closed loops at the settings to begin with.

    `tried` has requests answered in time, by settings, of those where there was a choice.
    """

    settings: dict[str, str]
    capacity: float
    tried: dict[str, float] = field(default_factory=dict)


def capacity(
    interleaved: InterleavedRuns, kind: ServerKind, settings: Settings, requests: Scenario, folder: Path, effort: Effort
) -> float:
    """Requests a second that closed loops get answered. Raises `ServerFailed` or `LoadTestFailed`."""
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
    """Try the settings, dimension by dimension from `settings` on, until `may_go_on` says no.

    The score of a setting is the requests answered in time while the load rises from little to too much: a server that
    sustains more, and one that is quicker before that, have more of them. All get the same requests at the same
    instants. Raises `ServerFailed` or `LoadTestFailed` where the first settings fail; others that do are out.
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

    # What suits a server suits one that differs from it in its queue's end alone.
    for dimension in () if is_relative_tuned else kind.dimensions:
        _choose(tuned, kind.name, dimension, on_the_ramp, may_go_on)
    _choose(tuned, kind.name, kind.overload_choices, beyond, may_go_on)
    return tuned


def _choose(
    tuned: Tuned, name: str, choices: tuple[Settings, ...], score: Score, may_go_on: Callable[[], bool]
) -> None:
    """Take the best of the choices into the settings."""
    scores: dict[str, tuple[float, dict[str, str]]] = {}
    for choice in choices:
        if not may_go_on():
            break
        candidate = tuned.settings | dict(choice)
        label = describe(candidate)
        # Settings that were tried in another dimension are not tried again.
        found = tuned.tried[label] if label in tuned.tried else score(candidate)
        tuned.tried[label] = found
        scores[label] = found, candidate
        log_progress(f"  {name}: {found:.0f} in time with {label}")
    if scores:
        tuned.settings = max(scores.values(), key=lambda pair: pair[0])[1]


def _in_time(run: RunFolder) -> float:
    return float(sum(stage.all.within_objective for stage in totals(run).stages))
