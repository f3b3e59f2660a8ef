"""Interleaved runs: one server is measured while all others are paused."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from benchmarks.servers.process import ServerProcess
from benchmarks.servers.server_kinds import ServerKind, Settings
from loadtest.cli.run import RunOptions, run_scenario
from loadtest.results.records import Outcome
from loadtest.results.run_folder import RunFolder
from loadtest.workload.scenario import Scenario

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
