"""Number of usable processors: CPU affinity and the container's CPU limit."""

import math
import os
from pathlib import Path

_MEMBERSHIP, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def usable_cpus() -> int:
    """Return the number of processors in the affinity mask, at most the CPU limit rounded down, at least 1."""
    return max(1, min(len(os.sched_getaffinity(0)), math.floor(min(cpu_limit(), os.cpu_count() or 1))))


def cpu_limit(membership: Path = _MEMBERSHIP, groups: Path = _GROUPS) -> float:
    """Return the CPU seconds per second that this process may use (`docker run --cpus`); infinite without a limit.

    The minimum over the process's control group (version 2) and its ancestors. A group that has used its quota is
    stopped for the rest of the period (0.1 s), so engines beyond the limit only stop each other and the event loop.
    """
    try:
        memberships = membership.read_text().splitlines()
    except OSError:
        return math.inf
    own = next((line.removeprefix("0::/") for line in memberships if line.startswith("0::/")), "")
    folders = [groups / own, *(groups / own).parents]
    return min(_limit_of(folder) for folder in folders[: folders.index(groups) + 1])


def _limit_of(folder: Path) -> float:
    try:
        quota, period = (folder / "cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError):  # no such file, or "max"
        return math.inf
