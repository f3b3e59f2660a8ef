"""The other end of the protocol: an engine's process, held still while another engine is measured."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from benchmarks.paths import ROOT
from benchmarks.workers.protocol import Done, Job, Ready

# Each engine is told its threads in so many words; what a shell happens to export must not tell it otherwise.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "KMP_BLOCKTIME", "GOMP_SPINCOUNT", "MKL_NUM_THREADS")

Message = TypeVar("Message", bound=BaseModel)


class WorkerFailed(RuntimeError):
    """An engine that did not start or did not answer; the message is the reason, in one line."""


class Worker:
    """A running engine. Use it as a context manager.

    Between two jobs the process is stopped (SIGSTOP). A pool of OpenMP or ONNX Runtime threads goes on spinning for a
    while after its work is done, and would take the cores from the engine whose turn is next; telling it not to spin
    (OMP_WAIT_POLICY=passive) would slow down its own work instead. Stopped, it costs nothing and changes nothing.
    """

    def __init__(
        self, command: Sequence[str], log: Path, preload: Path | None = None, timeout_seconds: float = 1800.0
    ) -> None:
        """Start it and wait until it is ready. Raises `WorkerFailed`. `preload` is a shared library, an allocator."""
        environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
        environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TYPER_STANDARD_TRACEBACK": "1"}
        if preload is not None:
            environment["LD_PRELOAD"] = str(preload)
        self._log = log
        self._timeout_seconds = timeout_seconds
        log.parent.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        with log.open("wb") as stream:
            self._process = subprocess.Popen(  # noqa: S603 - the command is ours
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, env=environment, cwd=ROOT
            )
        try:
            self.versions = self._answer(Ready).versions
        except BaseException:
            self.close()
            raise
        self.start_seconds = time.perf_counter() - started
        self._process.send_signal(signal.SIGSTOP)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def run(self, job: Job) -> Done:
        """Decode a job. Raises `WorkerFailed`."""
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write(job.model_dump_json().encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerFailed(self._reason()) from None
        done = self._answer(Done)
        self._process.send_signal(signal.SIGSTOP)
        return done

    def _answer(self, kind: type[Message]) -> Message:
        assert self._process.stdout is not None
        is_late = False

        def give_up() -> None:
            nonlocal is_late
            is_late = True
            self._process.kill()

        timer = Timer(self._timeout_seconds, give_up)
        timer.start()
        try:
            # A library may print while it is imported, before the worker has its answers to itself.
            for line in self._process.stdout:
                try:
                    return kind.model_validate_json(line)
                except ValidationError:
                    continue
        finally:
            timer.cancel()
        if is_late:
            raise WorkerFailed(f"no answer within {self._timeout_seconds:.0f} s")
        raise WorkerFailed(self._reason())

    def _reason(self) -> str:
        """The last line on standard error, which is the exception where there was one."""
        code = self._process.wait()
        lines = [line for line in self._log.read_text("utf-8", "replace").splitlines() if line.strip()]
        end = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"{lines[-1]} ({end})" if lines else end

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        with suppress(BrokenPipeError):  # what was left to send has nobody to read it
            self._process.stdin.close()
        self._process.stdout.close()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
