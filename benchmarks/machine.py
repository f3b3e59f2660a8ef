"""The machine of a measurement, and its processor time."""

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel


class Machine(BaseModel):
    """Description of a machine at one time."""

    cpu: str
    usable_cpus: int
    architecture: str
    system: str
    load_before: float
    date: str


def usable_cpus() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def describe_machine() -> Machine:
    """Describe this machine now. `load_before` is the load average over one minute; above 0 other processes run."""
    cpuinfo = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return Machine(
        cpu=found.group(1).strip() if found else platform.processor() or "unknown",
        usable_cpus=usable_cpus(),
        architecture=platform.machine(),
        system=f"{platform.system()} {platform.release()}",
        load_before=round(os.getloadavg()[0], 2),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def busy_seconds() -> float:
    """Return the seconds of work of the usable processors since the start of the machine, hypervisor included."""
    usable = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = 0
    for line in Path("/proc/stat").read_text("ascii").splitlines():
        name, *fields = line.split()
        if name in usable:
            user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    """Return the processor seconds of a process and its threads so far."""
    # The second field is the name in parentheses, which may contain any character.
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
