"""A load test as a function call. Locust runs in a process of its own, because it patches the standard library."""

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
    """The load test could not run, or the server answered no request."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run that are not part of the scenario."""

    seed: int = 1
    label: str = ""
    knee: float | None = None  # requests per second, for rates in shares of the knee
    guard_requests: int = 300  # number of answers compared with those of the idle server; 0 disables it
    server_pid: int | None = None  # to measure the processor time of the server and its children
    urgent: bool = True  # request priority over the server, so that requests leave on time
    quiet: bool = False  # print nothing
    thresholds: Thresholds = NO_THRESHOLDS  # stored with the run for its reports


def run_scenario(url: str, scenario: Scenario, folder: Path, options: RunOptions) -> RunFolder:
    """Run the scenario against the server at `url` and return the folder with the measurements.

    Blocks until the last answer is received and checked. Creates `folder`, which must not contain a run, but neither
    totals nor report. Raises `ValueError` for an invalid address or invalid options, `LoadTestFailed` if there are no
    measurements.

    Ctrl-C, or SIGTERM in the main thread, ends the run early: requests in flight are completed, and the run is marked
    as interrupted. Raises `KeyboardInterrupt` if nothing was measured by then, or at a second Ctrl-C.
    """
    address_of(url)
    if options.knee is not None:
        scenario = scenario.with_rates(options.knee)
    if scenario.needs_knee and scenario.search is None:
        raise ScenarioInvalid(
            f"scenario {scenario.name} has rates in shares of the knee and no search; pass --knee RATE"
        )
    for stage in scenario.stages:
        request_sequence(scenario, options.seed, stage.name)  # raises for missing languages and corpora
    run = RunFolder(folder)
    if run.records_file.exists():
        raise LoadTestFailed(f"{folder} already contains a run; set another folder with --output")
    with tempfile.TemporaryDirectory() as temporary, tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        scenario_file = Path(temporary, "scenario.json")
        scenario_file.write_text(scenario.model_dump_json(), encoding="utf-8")
        status, was_interrupted = _run(_command(url, scenario_file, folder, options), options.quiet, errors)
        if was_interrupted and (status or not run.records_file.exists()):
            raise KeyboardInterrupt
        if status:
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()]
            message = lines[-1].removeprefix("loadtest: ") if lines else f"locust exited with status {status}"
            raise LoadTestFailed(message)
    if not any(record.outcome is Outcome.ANSWERED for record in run.records()):
        reasons = sorted({record.reason for record in run.records()})
        raise LoadTestFailed(f"{url} answered no request: {', '.join(reasons) or 'none was sent'}")
    return run


def _run(command: list[str], is_quiet: bool, errors: TextIO) -> tuple[int, bool]:
    """Return the command's exit status and whether it was interrupted. It does not outlive this process."""
    with (
        _sigterm_interrupts(),
        subprocess.Popen(  # noqa: S603 - this interpreter, and a file of this package
            [sys.executable, str(CHILD_PROCESS), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if is_quiet else None,
            stderr=errors,
            process_group=0,  # a terminal's Ctrl-C reaches it once, through this process
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
def _sigterm_interrupts() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C inside the block. Only the main thread may set a signal handler."""
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
    command += ["--loglevel", "WARNING", "--host", url, "--scenario-json", str(scenario_file), "--output", str(folder)]
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
