"""How the comparison talks to an engine in a process of its own: one JSON object a line, in and out.

A worker is told its options on the command line, loads, and says that it is ready. Then it decodes whatever job it is
sent, and says how long that took. Loading, tokenizing and detokenizing are never timed.

This module needs pydantic and nothing of the project, so that a worker can live in an environment of its own.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

PR_SET_PDEATHSIG = 1  # Linux's prctl: the signal to get when the parent process ends


class Job(BaseModel):
    """Sentences as token ids with the end-of-sequence token, decoded with these parameters.

    `max_new_tokens` is what an engine may generate for a sentence, the end-of-sequence token counted where the engine
    counts it. `batch_size` sentences or padded source tokens form a batch; engines that form their own ignore it.
    """

    sources: list[list[int]]
    beam_size: int
    max_new_tokens: int
    length_penalty: float = 1.0
    batch_size: int = 32
    batch_by: Literal["sentences", "tokens"] = "sentences"
    return_outputs: bool = False


class Ready(BaseModel):
    """The first thing a worker says: the packages it runs on, by name."""

    versions: dict[str, str]


class Done(BaseModel):
    """What a worker says of a job. `outputs` are token ids without the end-of-sequence token.

    `output_tokens` leaves that token out as well: every engine generates one for each sentence that ended by itself.
    """

    seconds: float
    output_tokens: int
    peak_bytes: int
    outputs: list[list[int]] | None = None


def serve(decode: Callable[[Job], Sequence[Sequence[int]]], packages: Sequence[str]) -> None:
    """Answer jobs from standard input until it ends. `packages` are the distributions whose versions matter."""
    # The one that started this may be killed while this is stopped, and then nobody would ever continue it.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Whatever a library prints goes to standard error, so that nothing but answers is in the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    versions = {"python": sys.version.split()[0], **{package: version(package) for package in packages}}
    print(Ready(versions=versions).model_dump_json(), file=answers, flush=True)
    for line in sys.stdin:
        job = Job.model_validate_json(line)
        start = time.perf_counter()
        outputs = decode(job)
        seconds = time.perf_counter() - start
        done = Done(
            seconds=seconds,
            output_tokens=sum(len(output) for output in outputs),
            peak_bytes=_peak_bytes(),
            outputs=[list(output) for output in outputs] if job.return_outputs else None,
        )
        print(done.model_dump_json(), file=answers, flush=True)


def _peak_bytes() -> int:
    """Largest resident size so far. Linux only: `ru_maxrss` would count the process that started this one, too."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
