"""A comparison of servers: start and tune them, run the rounds, write the reports."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.progress import log_progress
from benchmarks.servers.results import Comparison, ServerFound
from benchmarks.servers.rounds import Procedure, ServerUnderTest, merged, run_rounds
from benchmarks.servers.running import InterleavedRuns
from benchmarks.servers.server_kinds import Launch, Material, ServerFailed, ServerKind, server_kind
from benchmarks.servers.tuning import Effort, Tuned, capacity, requests_for, tune
from loadtest.cli.run import LoadTestFailed
from loadtest.report.write import write_comparison
from loadtest.workload.scenario import Scenario, ScenarioInvalid

TUNING_SHARE = 0.4  # of the time limit


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Options of a comparison. Servers with an entry in `settings` are not tuned."""

    scenario: Scenario
    material: Material
    servers: Sequence[str]
    settings: Mapping[str, Mapping[str, str]]
    is_tuning: bool
    seed: int
    out: Path


def compare(options: ComparisonOptions, procedure: Procedure, comparison: Comparison) -> None:
    """Fill in the comparison and write all runs and reports to a folder.

    A server that cannot run stays in the tables with the reason.
    """
    servers: list[ServerUnderTest] = []
    with InterleavedRuns(options.out / "logs", options.seed) as interleaved:
        try:
            for name in options.servers:
                server = _prepared(name, options)
                comparison.servers.append(server.found)
                servers.append(server)
            log_progress("settings")
            _choose_settings(interleaved, servers, options, procedure)
            log_progress("rounds")
            rounds = run_rounds(interleaved, [one for one in servers if one.is_active], procedure)
            comparison.notes.append(f"{rounds} of {procedure.rounds} rounds within the time limit.")
        except KeyboardInterrupt:
            comparison.notes.append("Interrupted; later measurements are missing.")
    _write_runs(servers, options.out)


def _prepared(name: str, options: ComparisonOptions) -> ServerUnderTest:
    """Return a server that can be started, or one with the reason why it cannot."""
    try:
        kind = server_kind(name, options.material)
        requests = requests_for(options.scenario, options.material.beam_size)
    except (ServerFailed, ScenarioInvalid) as failure:
        log_progress(f"  {name} is excluded: {failure}")
        unavailable = ServerKind(name, _never, {})
        return ServerUnderTest(unavailable, options.scenario, ServerFound(name, not_run=str(failure)))
    return ServerUnderTest(kind, requests, ServerFound(name))


def _never(_: Mapping[str, str]) -> Launch:
    raise ServerFailed("it is not available")


def _choose_settings(
    interleaved: InterleavedRuns, servers: Sequence[ServerUnderTest], options: ComparisonOptions, procedure: Procedure
) -> None:
    now = time.monotonic()
    stop_tuning = now + TUNING_SHARE * (procedure.give_up - now)
    chosen: dict[str, dict[str, str]] = {name: dict(settings) for name, settings in options.settings.items()}
    for server in servers:
        if not server.is_active:
            continue
        kind, found = server.kind, server.found
        start = {**kind.defaults, **chosen.get(kind.relative, {}), **chosen.get(kind.name, {})}
        folder = options.out / "tuning" / kind.name
        is_known = not options.is_tuning or kind.name in options.settings
        try:
            if is_known:
                tuned = Tuned(start, capacity(interleaved, kind, start, server.requests, folder, Effort()))
            else:
                tuned = tune(
                    interleaved,
                    kind,
                    start,
                    server.requests,
                    folder,
                    Effort(),
                    lambda: time.monotonic() < stop_tuning,
                    is_relative_tuned=kind.relative in chosen,
                )
        except (ServerFailed, LoadTestFailed) as failure:
            found.not_run = str(failure)
            log_progress(f"  {kind.name} is excluded: {failure}")
            continue
        chosen[kind.name] = tuned.settings
        found.settings, found.capacity, found.tried = tuned.settings, tuned.capacity, tuned.tried
        log_progress(f"  {kind.name}: {tuned.capacity:.1f} requests/s in closed loops")
    (options.out / "settings.json").write_text(json.dumps(chosen, indent=2) + "\n", "utf-8")


def _write_runs(servers: Sequence[ServerUnderTest], out: Path) -> None:
    """Write the runs of each server as one run, and a comparison of all servers."""
    runs = [
        merged(server.runs, out / "runs" / server.found.name, server.found.name) for server in servers if server.runs
    ]
    if len(runs) > 1:
        write_comparison(runs, out)
