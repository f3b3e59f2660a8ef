"""Protocol between the comparison and an engine's process: one JSON object per line in both directions.

A worker takes its options from the command line, loads, and reports that it is ready. Then it decodes jobs and reports
their durations. Loading, tokenizing and detokenizing are never timed.

This module needs pydantic and no other module of the project, so that a worker can run in its own environment.
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

PR_SET_PDEATHSIG = 1  # Linux prctl: signal at the end of the parent process


class Job(BaseModel):
    """Sentences as token ids with the end-of-sequence token, and decoding parameters.

    `max_new_tokens` limits the tokens per sentence, including the end-of-sequence token if the engine counts it.
    `batch_size` sentences or padded source tokens form a batch; engines with their own batches ignore it.
    """

    sources: list[list[int]]
    beam_size: int
    max_new_tokens: int
    length_penalty: float = 1.0
    batch_size: int = 32
    batch_by: Literal["sentences", "tokens"] = "sentences"
    return_outputs: bool = False


class Ready(BaseModel):
    """First message of a worker: versions of its packages by name."""

    versions: dict[str, str]


class Done(BaseModel):
    """Result of a job. `outputs` are token ids without the end-of-sequence token.

    `output_tokens` does not count that token: every engine generates one for each sentence that ended by itself.
    """

    seconds: float
    output_tokens: int
    peak_bytes: int
    outputs: list[list[int]] | None = None


def serve(decode: Callable[[Job], Sequence[Sequence[int]]], packages: Sequence[str]) -> None:
    """Answer jobs from standard input until it ends. `packages` are the distributions whose versions matter."""
    # The parent may be killed while this process is stopped; it would stay stopped forever.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Output of libraries goes to standard error, so that standard output contains only answers.
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
    """Return the largest resident size so far. Linux only: `ru_maxrss` includes the parent process."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024
