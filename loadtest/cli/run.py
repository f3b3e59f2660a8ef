"""A load test as a function call: locust runs in a process of its own, because it patches the standard library."""

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from loadtest.results.records import Outcome
from loadtest.results.run_folder import RunFolder
from loadtest.results.thresholds import NO_THRESHOLDS, Thresholds
from loadtest.sending.addresses import address_of
from loadtest.workload.requests import request_sequence
from loadtest.workload.scenario import Scenario, ScenarioInvalid

_PACKAGE = Path(__file__).resolve().parents[1]
LOCUSTFILE = _PACKAGE / "locustfile.py"
CHILD_PROCESS = _PACKAGE / "coordination" / "child_process.py"


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

    Ctrl-C, and SIGTERM where this is the main thread, end the run early: what is on its way is answered, and the folder
    says that the run was broken off. `KeyboardInterrupt` is raised if nothing was measured by then, or at a second one.
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
        status, was_interrupted = _run(_command(url, scenario_file, folder, options), options.quiet, errors)
        if was_interrupted and (status or not run.records_file.exists()):
            raise KeyboardInterrupt
        if status:
            errors.seek(0)
            told = [line for line in errors.read().splitlines() if line.strip()]
            raise LoadTestFailed(told[-1].removeprefix("loadtest: ") if told else f"locust ended with status {status}")
    if not any(record.outcome is Outcome.ANSWERED for record in run.records()):
        reasons = sorted({record.reason for record in run.records()})
        raise LoadTestFailed(f"{url} answered nothing: {', '.join(reasons) or 'nothing was sent'}")
    return run


def _run(command: list[str], is_quiet: bool, errors: TextIO) -> tuple[int, bool]:
    """The command's exit status, and whether it was asked to end early. It does not outlive this process."""
    with (
        _terminated_like_interrupted(),
        subprocess.Popen(  # noqa: S603 - this interpreter, and a file of this package
            [sys.executable, str(CHILD_PROCESS), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if is_quiet else None,
            stderr=errors,
            process_group=0,  # a terminal's Ctrl-C comes to it once, through here, as any other signal does
        ) as process,
    ):
        try:
            return process.wait(), False
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            return process.wait(), True
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, as long as this holds. Only the main thread may say what a signal does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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
