"""Engine threads over a table, and a runner whose steps wait for a test."""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

from server.interface.request import Completion, Request, Timings
from server.workers.pool import EnginePool, PoolOptions
from tests.fakes.engine import END, FakeRunner, copying_table, fake_bundle, request
from tests.fakes.sentence_params import sentence_params

VOCAB = 12
PATIENCE_SECONDS = 60.0
_GLANCE_SECONDS = 0.001


class HeldRunner(FakeRunner):
    """Runner whose decoder steps wait for a test."""

    def __init__(self) -> None:
        super().__init__(copying_table(VOCAB))
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self._steps = threading.Semaphore(0)

    def one_step(self) -> None:
        """Release one step; the next ones wait."""
        self._steps.release()

    def before_step(self) -> None:
        """Wait for the release of the step."""
        self.entered.set()
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not self.go_on.wait(_GLANCE_SECONDS) and not self._steps.acquire(blocking=False):
            assert time.monotonic() < give_up, "the test did not release its runner"


def sentence(length: int, beam_size: int = 1, deadline: float | None = None) -> Request:
    """Return a sentence of `length` tokens, including the end, that is its own translation."""
    asked = request([*([3] * (length - 1)), END], sentence_params(beam_size, max_new_tokens=64), deadline)
    asked.timings = Timings(time.monotonic())
    return asked


def tokens(completions: Sequence[Completion]) -> list[list[int]]:
    """Return the tokens of the best hypotheses."""
    return [completion.hypotheses[0].token_ids for completion in completions]


def begin(replicas: EnginePool, *requests: Request) -> asyncio.Task[list[Completion]]:
    """Start a call that runs during the test."""
    return asyncio.create_task(replicas.generate(requests))


async def reached(event: threading.Event) -> None:
    """Wait for an event of another thread."""
    assert await asyncio.to_thread(event.wait, PATIENCE_SECONDS)


def with_replicas(
    runners: Sequence[FakeRunner],
    scenario: Callable[[EnginePool], "asyncio.Future[None] | object"],
    max_waiting: int = 100,
) -> None:
    """Run a coroutine of a test with started engines, and close them in the end."""
    options = PoolOptions(replicas=len(runners), max_rows=16, max_waiting=max_waiting)
    replicas = EnginePool(fake_bundle(VOCAB), runners, options)
    replicas.start()
    try:
        asyncio.run(asyncio.wait_for(scenario(replicas), 2 * PATIENCE_SECONDS))  # type: ignore[arg-type]
    finally:
        for runner in runners:
            if isinstance(runner, HeldRunner):
                runner.go_on.set()
        replicas.close()
