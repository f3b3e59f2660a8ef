"""The generator's machine, and the resources of processes on it."""

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
    """Resources of a process and its children."""

    cpu_seconds: float
    resident_bytes: int


def machine_info() -> MachineInfo:
    """Return the description of this machine."""
    return MachineInfo(_processor(), len(os.sched_getaffinity(0)), platform.platform())


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that send."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # not installed, run from its folder
            continue
    return found


def be_urgent() -> int:
    """Request priority over the server, so that requests leave on time; return the resulting niceness.

    Needs root or CAP_SYS_NICE; otherwise the niceness does not change.
    """
    try:
        return os.nice(URGENT_NICE)
    except OSError:
        return os.nice(0)


def process_use(pid: int) -> ProcessUse | None:
    """Return the resources of a process and its children so far; None if it does not exist."""
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
