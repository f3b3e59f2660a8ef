"""How many processors there are for a server: those it may run on, within a container's limit on their time."""

import math
import os
from pathlib import Path

_MEMBERSHIP, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def usable_cpus() -> int:
    """Processors this process may run on, or as many whole ones as a limit on its time amounts to; at least 1."""
    return max(1, min(len(os.sched_getaffinity(0)), math.floor(min(cpu_limit(), os.cpu_count() or 1))))


def cpu_limit(membership: Path = _MEMBERSHIP, groups: Path = _GROUPS) -> float:
    """Processor time a second that this process may take (`docker run --cpus`); infinite without a limit.

    The least of its control group's (version 2) and of those around that. What has used it up stands still for the rest
    of a tenth of a second, so that more engines than that only stop each other and the event loop.
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
