"""The `kvasir loadtest` command: run a scenario, write its report, print its figures."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from loadtest.cli.run import RunOptions, run_scenario
from loadtest.report.headline import headline_of
from loadtest.report.write import write_comparison, write_report
from loadtest.results.figures import StageTotals, Totals, from_json
from loadtest.results.records import Outcome
from loadtest.results.run_folder import RunFolder, RunInfo
from loadtest.results.thresholds import NO_THRESHOLDS, Thresholds, Verdict
from loadtest.results.timeline import cached_share
from loadtest.workload.scenario import Scenario, load_scenario, scenario_names

RUNS_FOLDER = Path("loadtest-runs")
# Share of cached answers beyond the scenario's own repeats; a few texts are equal by chance.
_UNEXPECTED_CACHED_SHARE = 0.05
_HEADINGS = ("stage", "load", "answered", "rejected", "other", "p50 ms", "p95", "p99", "p99.9", "in time", "lag p99")
_WIDTH = 10


def scenario_list() -> str:
    """Return the named scenarios, one per line."""
    names = scenario_names()
    width = max(len(name) for name in names)
    return "\n".join(f"{name:{width}}  {load_scenario(name).description}" for name in names)


def load_test(url: str, scenario: Scenario, out: Path | None, options: RunOptions) -> int:
    """Run the scenario, write records and report, print the figures and return the exit code.

    Raises the errors of `run_scenario`.
    """
    folder = out or RUNS_FOLDER / f"{scenario.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    return report_on(run_scenario(url, scenario, folder, options))


def report_on(run: RunFolder, thresholds: Thresholds = NO_THRESHOLDS) -> int:
    """Write the report of a run, print the figures and return the exit code.

    `thresholds` take precedence over those of the run.
    """
    verdict = write_report(run, thresholds)
    totals = from_json((run.path / "totals.json").read_bytes())
    print("\n".join(summary(run.info(), totals, verdict, cached_share(run.metrics()))))
    print(f"report: {run.path / 'report.html'}")
    print(verdict.sentence)
    return verdict.exit_code.value


def compare_runs(runs: Sequence[Path], out: Path) -> None:
    """Compare runs with the first one, write the comparison and print it."""
    comparison = write_comparison([RunFolder(path) for path in runs], out)
    for warning in comparison.warnings:
        print(f"warning: {warning}")
    print((out / "comparison.md").read_text(encoding="utf-8"))
    print(f"report: {out / 'comparison.html'}")


def summary(info: RunInfo, totals: Totals, verdict: Verdict, cached: float) -> Iterator[str]:
    """Yield the lines of a run's figures for a terminal."""
    yield ""
    yield from _stage_table([stage for stage in totals.stages if not stage.is_search_step])
    yield ""
    *lines, _ = headline_of(totals, verdict)  # without the verdict, the last line of the output
    yield from (f"{line.name}: {line.value} ({line.meaning})" for line in lines)
    cores, nice = info.machine.cores, info.generator.nice
    yield f"Generator: {totals.headline.generator_cpu_share:.1%} of {cores} cores, nice {nice}"
    workload = info.scenario.get("workload")
    repeats = workload.get("repeats", 0.0) if isinstance(workload, dict) else 0.0
    if isinstance(repeats, int | float) and cached > repeats + _UNEXPECTED_CACHED_SHARE:
        yield (
            f"warning: {cached:.0%} of the sentences came from the server's cache, more than the scenario repeats; "
            "restart the server or pass another --seed"
        )


def _stage_table(stages: Sequence[StageTotals]) -> Iterator[str]:
    width = max((len(stage.name) for stage in stages), default=0) + 2
    for stage, *cells in (_HEADINGS, *(_row(stage) for stage in stages)) if stages else ():
        yield f"{stage:{width}}" + "".join(f"{cell:>{_WIDTH}}" for cell in cells)


def _row(stage: StageTotals) -> tuple[str, ...]:
    answered, rejected = stage.all.outcomes[Outcome.ANSWERED], stage.all.outcomes[Outcome.REJECTED]
    latency, share = stage.all.latency_ms, stage.all.share_within_objective
    figures = [f"{value:.0f}" for value in (latency.p50, latency.p95, latency.p99, latency.p999)] if latency else "----"
    lag = f"{stage.lag_ms.p99:.1f}" if stage.lag_ms and not stage.is_closed_loop else "-"
    counts = (str(count) for count in (answered, rejected, stage.all.sent - answered - rejected))
    return (stage.name, _load(stage), *counts, *figures, "-" if share is None else f"{share:.1%}", lag)


def _load(stage: StageTotals) -> str:
    if stage.is_closed_loop:
        return f"{stage.users} users"
    return f"{stage.rate:.3g}/s" if stage.ramp_to is None else f"{stage.rate:.3g}-{stage.ramp_to:.3g}/s"
