"""The process of an engine, paused while another engine is measured."""

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

# Each engine receives its number of threads as an option; variables of the shell must not change it.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "KMP_BLOCKTIME", "GOMP_SPINCOUNT", "MKL_NUM_THREADS")

Message = TypeVar("Message", bound=BaseModel)


class WorkerFailed(RuntimeError):
    """The engine did not start or did not answer; the message is the reason in one line."""


class Worker:
    """A running engine. Use it as a context manager.

    Between two jobs the process is stopped (SIGSTOP). Thread pools of OpenMP or ONNX Runtime spin for a while after
    their work and would take processors from the next engine. Disabling that (OMP_WAIT_POLICY=passive) would slow down
    the engine itself; a stopped process takes no processor time and is not changed.
    """

    def __init__(
        self, command: Sequence[str], log: Path, preload: Path | None = None, timeout_seconds: float = 1800.0
    ) -> None:
        """Start the process and wait until it is ready. `preload` is an allocator's library. Raises `WorkerFailed`."""
        environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
        environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TYPER_STANDARD_TRACEBACK": "1"}
        if preload is not None:
            environment["LD_PRELOAD"] = str(preload)
        self._log = log
        self._timeout_seconds = timeout_seconds
        log.parent.mkdir(parents=True, exist_ok=True)
        started = time.perf_counter()
        with log.open("wb") as stream:
            self._process = subprocess.Popen(  # noqa: S603 - a command of this project
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
        """Process id."""
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
            # A library may print while it is imported, before the worker redirects standard output.
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
        """Return the last line on standard error, which is the exception if there was one."""
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
        with suppress(BrokenPipeError):  # the process no longer reads the rest
            self._process.stdin.close()
        self._process.stdout.close()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
