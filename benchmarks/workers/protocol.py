"""How the comparison talks to an engine in a process of its own: one JSON object a line, in and out.

A worker is told its options on the command line, loads, and says "ready". Then it decodes whatever job it is sent, and
says how long that took. Loading, tokenizing and detokenizing are never timed.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel


class Job(BaseModel):
    """Sentences as token ids with the end-of-sequence token, decoded with these parameters."""

    sources: list[list[int]]
    beam_size: int
    max_new_tokens: int
    length_penalty: float = 1.0
    return_outputs: bool = False


class Done(BaseModel):
    """What a worker says of a job. `outputs` are token ids without the end-of-sequence token."""

    seconds: float
    output_tokens: int
    peak_bytes: int
    outputs: list[list[int]] | None = None


def serve(decode: Callable[[Job], Sequence[Sequence[int]]]) -> None:
    """Answer jobs from standard input until it ends."""
    print("ready", flush=True)
    for line in sys.stdin:
        job = Job.model_validate_json(line)
        start = time.perf_counter()
        outputs = decode(job)
        seconds = time.perf_counter() - start
        done = Done(
            seconds=seconds,
            # Each engine generates one more token than it gives back: the end of the sequence.
            output_tokens=sum(len(output) for output in outputs),
            peak_bytes=_peak_bytes(),
            outputs=[list(output) for output in outputs] if job.return_outputs else None,
        )
        print(done.model_dump_json(), flush=True)


def _peak_bytes() -> int:
    """Largest resident size so far. Linux only: `ru_maxrss` would count the process that started this one, too."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
