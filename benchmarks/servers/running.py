"""Servers of a comparison: one is measured while the processes of all others are paused."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from http import HTTPStatus
from pathlib import Path
from types import TracebackType

from benchmarks.paths import ROOT
from benchmarks.servers.server_kinds import Launch, ServerFailed, ServerKind, Settings
from benchmarks.workers.process import THREAD_VARIABLES
from loadtest.cli.run import RunOptions, run_scenario
from loadtest.results.records import Outcome
from loadtest.results.run_folder import RunFolder
from loadtest.workload.scenario import Scenario

POLL_SECONDS = 0.1

_CHILD_PROCESS = ROOT / "loadtest" / "coordination" / "child_process.py"  # by path: a server may run in any folder

_OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


class ServerProcess:
    """A running server. Use it as a context manager.

    While it is paused (SIGSTOP) it takes no processor time, neither for spinning thread pools nor for requests whose
    clients have disconnected.
    """

    def __init__(self, launch: Launch, log: Path, timeout_seconds: float = 600.0) -> None:
        """Start the process and wait until it is ready. Raises `ServerFailed`."""
        self._port = _free_port()
        self._log = log
        command = [part.replace("{port}", str(self._port)) for part in launch.command]
        environment = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as stream:
            self._process = subprocess.Popen(  # noqa: S603 - a command of this project
                [sys.executable, str(_CHILD_PROCESS), *command],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=environment | _OFFLINE | launch.environment,
                cwd=launch.folder,
            )
        try:
            self._wait_until_ready(launch.ready_path, timeout_seconds)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self._port}"

    def pause(self) -> None:
        """Pause the process."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process. Has no effect on a running one."""
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End the process, running or paused."""
        self._process.kill()
        self._process.wait()

    def _wait_until_ready(self, path: str, timeout_seconds: float) -> None:
        give_up = time.monotonic() + timeout_seconds
        while not self._is_ready(path):
            if self._process.poll() is not None:
                raise ServerFailed(self._reason())
            if time.monotonic() > give_up:
                raise ServerFailed(f"not ready after {timeout_seconds:.0f} s")
            time.sleep(POLL_SECONDS)

    def _is_ready(self, path: str) -> bool:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)) as connection:
            try:
                connection.request("GET", path)
                return connection.getresponse().status == HTTPStatus.OK
            except (OSError, http.client.HTTPException):
                return False

    def _reason(self) -> str:
        """Return the last line of the log, which is the exception if there was one."""
        lines = [line for line in self._log.read_text("utf-8", "replace").splitlines() if line.strip()]
        return f"{lines[-1] if lines else 'no output'} (exit code {self._process.returncode})"

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _free_port() -> int:
    """Return a free port: not every server can report a port that it chose itself."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


Runner = Callable[[str, Scenario, Path, RunOptions], RunFolder]


class InterleavedRuns:
    """The servers of a comparison, each started on first use. Use it as a context manager."""

    def __init__(self, logs: Path, seed: int, runner: Runner = run_scenario) -> None:
        self._logs = logs
        self._seed = seed
        self.runner = runner
        self._servers: dict[str, tuple[ServerProcess, dict[str, str]]] = {}

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of all servers, running or paused, by name."""
        return {name: server.pid for name, (server, _) in self._servers.items()}

    @property
    def started(self) -> dict[str, dict[str, str]]:
        """Settings with which the servers were started, by name."""
        return {name: settings for name, (_, settings) in self._servers.items()}

    def start(self, kind: ServerKind, settings: Settings) -> ServerProcess:
        """Return the running server with these settings, and pause the others. Raises `ServerFailed`."""
        for name, (server, _) in self._servers.items():
            if name != kind.name:
                server.pause()
        if kind.name in self._servers:
            server, now = self._servers[kind.name]
            if now == dict(settings):
                server.resume()
                return server
            self.stop(kind.name)
        server = ServerProcess(kind.launch(settings), self._logs / f"{kind.name}.log")
        self._servers[kind.name] = server, dict(settings)
        return server

    def stop(self, name: str) -> None:
        """End a server if it was started. The next use starts it again."""
        if name in self._servers:
            self._servers.pop(name)[0].close()

    def measure(self, kind: ServerKind, settings: Settings, scenario: Scenario, folder: Path) -> RunFolder:
        """Run a scenario against one server. Raises `ServerFailed` or `LoadTestFailed`."""
        server = self.start(kind, settings)
        options = RunOptions(seed=self._seed, label=kind.name, guard_requests=0, server_pid=server.pid, quiet=True)
        try:
            run = self.runner(server.url, scenario, folder, options)
            if run.info().interrupted:  # the interruption applies to the whole comparison
                raise KeyboardInterrupt
        except BaseException:
            self.stop(kind.name)
            raise
        if any(record.outcome in (Outcome.TIMED_OUT, Outcome.UNFINISHED) for record in run.records()):
            # It would still translate the requests without an answer during its next run.
            self.stop(kind.name)
        else:
            server.pause()
        return run

    def __enter__(self) -> "InterleavedRuns":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            for name in list(self._servers):
                stack.callback(self.stop, name)


def describe(settings: Mapping[str, str]) -> str:
    """Return the settings in a few words."""
    return ", ".join(f"{name} {value}" for name, value in settings.items()) or "as installed"
