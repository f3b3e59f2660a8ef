"""The machine the generator runs on, and what processes on it take."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from loadtest.results.run_folder import MachineInfo

URGENT_NICE = -10
_PACKAGES = ("kvasir-server", "locust", "gevent", "geventhttpclient")


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process and its children have taken."""

    cpu_seconds: float
    resident_bytes: int


def machine_info() -> MachineInfo:
    """This machine."""
    return MachineInfo(_processor(), len(os.sched_getaffinity(0)), platform.platform())


def versions() -> dict[str, str]:
    """Of Python and of the packages that send."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from its folder, not installed
            continue
    return found


def be_urgent() -> int:
    """Asks for priority over the server, so that requests leave on time; returns the niceness it got.

    It needs the right to (root, or CAP_SYS_NICE); without it everything stays as it was.
    """
    try:
        return os.nice(URGENT_NICE)
    except OSError:
        return os.nice(0)


def process_use(pid: int) -> ProcessUse | None:
    """What the process and its children have taken so far; None if there is no such process."""
    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        times = [one.cpu_times() for one in family]
        resident = sum(one.memory_info().rss for one in family)
    except psutil.Error:
        return None
    return ProcessUse(sum(one.user + one.system for one in times), resident)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
