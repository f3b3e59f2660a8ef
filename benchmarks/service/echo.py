"""An engine that answers at once: what remains is the time of texts and of HTTP."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bundle.loading import Bundle
from server.interface.request import Completion, FinishReason, Hypothesis, Request


@dataclass(frozen=True, slots=True)
class IdleStatus:
    """Status of an engine without work."""

    waiting: int = 0
    running: int = 0
    unfinished: int = 0
    rows_in_use: int = 0
    rows: int = 64
    heartbeat_age_seconds: float = 0.0
    has_engine: bool = True
    draining: bool = False


class EchoEngine:
    """`EngineClient` that answers each request with its own source tokens.

    With `num_cores` it simulates engines: each sentence occupies one of the cores for `sentence_seconds`, which costs
    this machine nothing.
    """

    def __init__(self, bundle: Bundle, num_cores: int = 0, sentence_seconds: float = 0.0) -> None:
        self.bundle = bundle
        self._cores = asyncio.Semaphore(num_cores) if num_cores else None
        self._sentence_seconds = sentence_seconds

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the sources as translations."""
        if (cores := self._cores) is not None:
            for _ in requests:
                async with cores:
                    await asyncio.sleep(self._sentence_seconds)
        return [_echo(request) for request in requests]

    def check_admission(self) -> None:
        """Do nothing: no queue."""

    def status(self) -> IdleStatus:
        """Return the status of an idle engine."""
        return IdleStatus()

    async def drain(self, timeout_seconds: float) -> bool:
        """Return True: no request remains."""
        return True

    def close(self) -> None:
        """Do nothing."""


def _echo(request: Request) -> Completion:
    timings = request.timings
    timings.admitted = timings.encoded = timings.assigned = timings.first_token = timings.finished = timings.arrived
    hypothesis = Hypothesis(request.source[:-1].tolist(), -1.0, -1.0, FinishReason.STOP)
    return Completion(request, [hypothesis], FinishReason.STOP)
