"""What a measurement was taken on."""

import os
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel


class Machine(BaseModel):
    """The processor as the operating system names it, and when it was measured."""

    cpu: str
    usable_cpus: int
    architecture: str
    system: str
    load_before: float
    date: str


def usable_cpus() -> int:
    """Processors this process may run on; what is set aside for it, not what the machine has."""
    return len(os.sched_getaffinity(0))


def describe_machine() -> Machine:
    """This machine, now. `load_before` is the load average over one minute: above 0 somebody else is at work."""
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
    """Seconds the usable processors have worked since the machine started, for whomever, the hypervisor included."""
    usable = {f"cpu{number}" for number in os.sched_getaffinity(0)}
    ticks = 0
    for line in Path("/proc/stat").read_text("ascii").splitlines():
        name, *fields = line.split()
        if name in usable:
            user, nice, system, _, _, irq, softirq, steal = map(int, fields[:8])
            ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def process_seconds(pid: int) -> float:
    """Processor seconds of a process, all its threads, so far."""
    # The second field is the name in parentheses, which may hold anything.
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
