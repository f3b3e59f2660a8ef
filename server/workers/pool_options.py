"""Options and status of a pool of engines."""

import math
from dataclasses import dataclass

from server.engine.engine import EngineObserver
from server.workers.thread_lending import ThreadLending


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """Number of engines and limits of each. `max_waiting` counts sentences over all engines.

    `max_queue_seconds` is the longest wait for rows that a call may expect, except during a burst. Engines run with
    `niceness` added to that of the process (threads on Linux only), so that the event loop answers without delay. With
    `processes` each engine has its own process and a copy of the weights, and never waits for the Python of another. A
    process that is silent for `heartbeat_limit_seconds` while it has work is killed and started again.

    The last `num_lent` replicas decode only while the other pools of `lending` have no requests.
    """

    replicas: int = 1
    threads_per_replica: int = 1
    max_rows: int = 64
    max_waiting: int = 1024
    max_encoder_tokens: int = 512
    device: str = "cpu"
    max_queue_seconds: float = math.inf
    niceness: int = 0
    processes: bool = False
    heartbeat_limit_seconds: float = math.inf
    observe: EngineObserver | None = None
    lending: ThreadLending | None = None
    num_lent: int = 0

    @property
    def num_own_replicas(self) -> int:
        """Replicas that decode whatever other models do."""
        return self.replicas - self.num_lent


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """Status of all engines together; see `EngineStatus`."""

    waiting: int
    running: int
    unfinished: int
    rows_in_use: int
    rows: int
    heartbeat_age_seconds: float
    draining: bool
    has_engine: bool
