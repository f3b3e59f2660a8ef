"""A load test as a function call: locust runs in a process of its own, because it patches the standard library."""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from loadtest.addresses import address_of
from loadtest.records import Outcome
from loadtest.requests import request_sequence
from loadtest.run_folder import RunFolder
from loadtest.scenario import Scenario, ScenarioInvalid
from loadtest.thresholds import NO_THRESHOLDS, Thresholds

LOCUSTFILE = Path(__file__).resolve().with_name("locustfile.py")


class LoadTestFailed(OSError):
    """There is nothing to report: the load test could not be run, or the server answered nothing."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a scenario is run; what it consists of is the scenario's own."""

    seed: int = 1
    label: str = ""
    knee: float | None = None  # requests a second, where the scenario's rates are parts of it
    guard_requests: int = 300  # answers compared with those of the idle server; 0: none
    server_pid: int | None = None  # to count the processor time of the server and its children
    urgent: bool = True  # ask for priority over the server, so that requests leave on time
    quiet: bool = False  # print nothing
    thresholds: Thresholds = NO_THRESHOLDS  # kept with the run, for its reports


def run_scenario(url: str, scenario: Scenario, folder: Path, options: RunOptions) -> RunFolder:
    """Runs the scenario against the server at `url` and returns the folder with what was measured.

    Blocks until all is sent, answered and checked. `folder` is made; it must not hold a run yet. The totals and the
    report are not made here. Raises `ValueError` for an address or options that make no test, `LoadTestFailed` where
    nothing could be measured.
    """
    address_of(url)
    if options.knee is not None:
        scenario = scenario.with_rates(options.knee)
    if scenario.needs_knee and scenario.search is None:
        raise ScenarioInvalid(f"scenario {scenario.name} has rates that are shares of the knee: pass --knee RATE")
    for stage in scenario.stages:
        request_sequence(scenario, options.seed, stage.name)  # languages and corpora that are not there are told now
    run = RunFolder(folder)
    if run.records_file.exists():
        raise LoadTestFailed(f"{folder} holds a run already")
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        scenario_file = Path(temporary, "scenario.json")
        scenario_file.write_text(scenario.model_dump_json(), encoding="utf-8")
        process = subprocess.Popen(  # noqa: S603 - this interpreter, and a file of this package
            _command(url, scenario_file, folder, options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if options.quiet else None,
            stderr=errors,
        )
        try:
            status = process.wait()
        except KeyboardInterrupt:  # it got the same signal, and ends with what it has measured
            status = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
        if status:
            errors.seek(0)
            told = [line for line in errors.read().splitlines() if line.strip()]
            raise LoadTestFailed(told[-1].removeprefix("loadtest: ") if told else f"locust ended with status {status}")
    if not any(record.outcome is Outcome.ANSWERED for record in run.records()):
        reasons = sorted({record.reason for record in run.records()})
        raise LoadTestFailed(f"{url} answered nothing: {', '.join(reasons) or 'nothing was sent'}")
    return run


def _command(url: str, scenario_file: Path, folder: Path, options: RunOptions) -> list[str]:
    command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary"]
    command += ["--loglevel", "WARNING", "--host", url, "--scenario-json", str(scenario_file), "--out", str(folder)]
    command += ["--seed", str(options.seed), "--label", options.label, "--guard-requests", str(options.guard_requests)]
    if options.knee is not None:
        command += ["--knee", str(options.knee)]
    if options.server_pid is not None:
        command += ["--server-pid", str(options.server_pid)]
    if not options.urgent:
        command.append("--not-urgent")
    for flag, threshold in (
        ("--max-p95-ms", options.thresholds.max_p95_ms),
        ("--min-goodput", options.thresholds.min_goodput),
        ("--max-error-ratio", options.thresholds.max_error_ratio),
    ):
        if threshold is not None:
            command += [flag, str(threshold)]
    return command
