"""An engine in a thread of this process."""

import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Protocol

from server.engine.engine import Engine, StreamUpdate, warm_up
from server.engine.scheduler import Scheduler
from server.interface.request import Completion, Request

SILENCE_SECONDS = 5.0  # after which an engine with work takes no more of it
_IDLE_SECONDS = 1.0  # period of the heartbeat of an idle engine


class EngineListener(Protocol):
    """Receiver of the results of an engine worker. Workers call it from any thread."""

    def progressed(self, updates: Sequence[StreamUpdate]) -> None:
        """Receive newly final tokens of streaming requests that continue."""
        ...

    def ended(self, completions: Sequence[Completion]) -> None:
        """Receive completions of requests that left the engine."""
        ...

    def lost(self, requests: Sequence[Request], why: str) -> None:
        """Receive the requests of an engine that died, and the reason."""
        ...

    def not_restarted(self) -> None:
        """Note that an engine that died could not be started again."""
        ...


class ThreadWorker:
    """Thread that steps an engine while it has work, with `niceness` added to that of the process (Linux)."""

    def __init__(
        self, engine: Engine, scheduler: Scheduler, listener: EngineListener, replica: int, niceness: int
    ) -> None:
        self._engine = engine
        self._scheduler = scheduler
        self._listener = listener
        self._replica = replica
        self._niceness = niceness
        self._is_closed = False
        self._last_step = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"engine-{replica}", daemon=True)

    def warm_up(self) -> None:
        """Decode a first sentence on the calling thread."""
        warm_up(self._engine, self._scheduler.submit)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Do nothing; the scheduler wakes the thread."""

    @property
    def num_rows_taken(self) -> int:
        """Rows assigned to requests."""
        return self._engine.num_rows_taken

    @property
    def silent_seconds(self) -> float:
        """Seconds since the last iteration of its loop."""
        return time.monotonic() - self._last_step

    cannot_start = False  # a thread does not die

    @property
    def is_responsive(self) -> bool:
        """Whether it has stepped lately."""
        return self.silent_seconds < SILENCE_SECONDS

    def close(self) -> None:
        """End the thread after its step. The scheduler must be closed before, which wakes the thread."""
        self._is_closed = True
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        if sys.platform == "linux" and self._niceness:  # elsewhere, threads have no priority of their own
            niceness = os.getpriority(os.PRIO_PROCESS, 0) + self._niceness
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
        engine = self._engine
        while not self._is_closed:
            result = engine.step()
            self._last_step = time.monotonic()
            if result.stream_updates:
                self._listener.progressed(result.stream_updates)
            if result.completions:
                self._listener.ended(result.completions)
            if not engine.num_running:
                self._scheduler.wait_for_work(self._replica, _IDLE_SECONDS)
