"""A load test as a function call: locust runs in a process of its own, because it patches the standard library."""

from dataclasses import dataclass
from pathlib import Path

from loadtest.run_folder import RunFolder
from loadtest.scenario import Scenario


class LoadTestFailed(Exception):
    """There is nothing to report: the load test could not be run, or the server answered nothing."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a scenario is run; what it consists of is the scenario's own."""

    seed: int = 1
    label: str = ""
    corpus: Path | None = None  # texts of one's own, a sentence a line
    knee: float | None = None  # requests a second, where the scenario's rates are parts of it
    guard_requests: int = 300  # answers compared with those of the idle server; 0: none
    server_pid: int | None = None  # to count the processor time of the server and its children
    urgent: bool = True  # ask for priority over the server, so that requests leave on time
    quiet: bool = False  # print nothing


def run_scenario(url: str, scenario: Scenario, folder: Path, options: RunOptions) -> RunFolder:
    """Runs the scenario against the server at `url` and returns the folder with what was measured.

    Blocks until all is sent, answered and checked. `folder` is made; it must not hold a run yet. The totals and the
    report are not made here. Raises `ValueError` for options that make no test, `LoadTestFailed` where nothing could
    be measured.
    """
    raise NotImplementedError
