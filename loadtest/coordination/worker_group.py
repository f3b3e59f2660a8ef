"""The coordinator's view of its workers: connections, commands sent, reports received."""

from collections.abc import Callable, Sequence
from dataclasses import asdict

from gevent.queue import Empty, Queue
from locust.runners import MasterRunner, Runner

from loadtest.coordination.messages import (
    CLOCK,
    CLOCK_READ,
    DONE,
    FAILED,
    GO,
    PREPARE,
    PREPARED,
    RECORDS,
    STOP,
    StageAssignment,
    StageDone,
    done_of,
)
from loadtest.results.clock import NUM_ROUND_TRIPS, RoundTrip, RunClock, WorkerClock, worker_clock

_CHECK_SECONDS = 1.0


class CoordinationFailed(Exception):
    """The load test cannot continue."""


class WorkerGroup:
    """The workers of a distributed test, or the single worker in the coordinator's process.

    Methods that wait raise `CoordinationFailed` if a worker fails or disconnects.
    """

    def __init__(self, runner: Runner, incoming: Queue, clock: RunClock) -> None:
        """Take the workers' messages from `incoming`, as pairs of kind and content; `clock` is the run's."""
        self._runner = runner
        self._incoming = incoming
        self._clock = clock
        self._workers: Sequence[str | None] = [None]  # None: in this process

    @property
    def is_distributed(self) -> bool:
        """Whether the workers are separate processes."""
        return isinstance(self._runner, MasterRunner)

    def __len__(self) -> int:
        """Return the number of workers."""
        return len(self._workers)

    def assemble(self) -> None:
        """Fix the group to the workers connected now; later ones have no part in the test."""
        if self.is_distributed:
            self._workers = sorted(self._connected())
            if not self._workers:
                raise CoordinationFailed("no worker is connected")

    def prepare(self, assignment: StageAssignment) -> None:
        """Let every worker prepare its part of the stage; sets the worker's number in the assignment."""
        self._incoming.queue.clear()
        for index, worker in enumerate(self._workers):
            self._runner.send_message(PREPARE, asdict(assignment) | {"worker": index}, worker)
        self._gather(PREPARED)

    def read_clocks(self) -> list[WorkerClock]:
        """Return the workers' clocks, in the order of the workers."""
        if not self.is_distributed:
            return [WorkerClock(self._clock.zero, 0.0)]
        return [worker_clock([self._round_trip(worker) for _ in range(NUM_ROUND_TRIPS)]) for worker in self._workers]

    def go(self, at: float, clocks: Sequence[WorkerClock]) -> None:
        """Start the stage at that instant of the run; `clocks` translate it for each worker."""
        for worker, clock in zip(self._workers, clocks, strict=True):
            self._runner.send_message(GO, {"at": at, "clock_zero": clock.zero}, worker)

    def stop(self) -> None:
        """Stop sending; the stage ends after the answers in flight."""
        for worker in self._workers:
            self._runner.send_message(STOP, {}, worker)

    def until_done(self, keep: Callable[[list[str]], None]) -> list[StageDone]:
        """Wait for the end of the stage; pass records to `keep` as they arrive, as lines of JSON."""
        return [done_of(data) for data in self._gather(DONE, keep)]

    def _gather(self, awaited: str, keep: Callable[[list[str]], None] | None = None) -> list[dict[str, object]]:
        messages: list[dict[str, object]] = []
        while len(messages) < len(self._workers):
            kind, data = self._next_message()
            if kind == RECORDS and keep is not None:
                lines = data["lines"]
                assert isinstance(lines, list)
                keep(lines)
            elif kind == awaited:
                messages.append(data)
        return messages

    def _round_trip(self, worker: str | None) -> RoundTrip:
        asked = self._clock()
        self._runner.send_message(CLOCK, {"asked": asked}, worker)
        while True:
            kind, data = self._next_message()
            if kind == CLOCK_READ and data["asked"] == asked:
                answered, read = self._clock(), data["read"]
                assert isinstance(read, float)
                return RoundTrip(asked, read, answered)

    def _next_message(self) -> tuple[str, dict[str, object]]:
        while True:
            try:
                kind, data = self._incoming.get(timeout=_CHECK_SECONDS)
            except Empty:
                self._check()
                continue
            if kind == FAILED:
                raise CoordinationFailed(data["reason"])
            return kind, data

    def _check(self) -> None:
        if self.is_distributed and (lost := set(self._workers) - self._connected()):
            raise CoordinationFailed(
                f"{len(lost)} of {len(self._workers)} workers disconnected; their requests are lost"
            )

    def _connected(self) -> set[str]:
        assert isinstance(self._runner, MasterRunner)
        return {client.id for client in self._runner.clients.all if client.state != "missing"}
