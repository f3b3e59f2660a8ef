"""Execution of a call: its deadline, threads for long texts, and parts that run concurrently."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, ParamSpec, Protocol, TypeVar

from server.interface.errors import ClientGone, DeadlineExceeded
from server.interface.interruption import interrupted_by
from server.translation.types import Phases

T = TypeVar("T")

_NOTHING = nullcontext()


@dataclass(slots=True)
class Deadline:
    """When a call must be finished, on its clock; without a limit `at` is None and `allowed_seconds` infinite.

    `is_abandoned` ends work in threads that no task waits for any more. Other threads read it. `phases` are the times
    of the rounds that were submitted.
    """

    at: float | None
    allowed_seconds: float
    clock: Callable[[], float]
    is_abandoned: bool = False
    phases: Phases | None = None

    @classmethod
    def of(cls, at: float | None, arrived: float, clock: Callable[[], float]) -> "Deadline":
        """Return the deadline of a call that arrived then."""
        return cls(at, math.inf if at is None else at - arrived, clock)

    @property
    def error(self) -> DeadlineExceeded:
        """The error for a call that is not finished in time."""
        # Until the first submission, all time is that of reading, segmentation and tokenization.
        phases = self.phases or Phases(self.allowed_seconds)
        return DeadlineExceeded(
            f"not finished within {self.allowed_seconds:g} seconds; send less text, or try again later",
            phases.by_name(),
        )

    def add_round(self, phases: Phases) -> None:
        """Add the times of a round of requests to those of earlier ones."""
        self.phases = phases if self.phases is None else self.phases.then(phases)

    def for_one_task(self) -> "Deadline":
        """Return the same deadline for one piece of work, which can be abandoned by itself."""
        return Deadline(self.at, self.allowed_seconds, self.clock, phases=self.phases)

    def check(self) -> None:
        """Raise `DeadlineExceeded` once it has passed, and `ClientGone` if it was abandoned."""
        if self.is_abandoned:
            raise ClientGone("the answer is no longer awaited")
        if self.at is not None and self.clock() > self.at:
            raise self.error

    def in_time(self, items: Iterable[T]) -> Iterable[T]:
        """Iterate over items. Raises `DeadlineExceeded` before the next one once it has passed."""
        return items if self.at is None else self._checked(items)

    def _checked(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self.check()
            yield item

    def interrupts(self) -> AbstractAsyncContextManager[None]:
        """Cancel what runs inside once it has passed, and raise `DeadlineExceeded`."""
        return _NOTHING if self.at is None else self._interrupting(self.at)

    @asynccontextmanager
    async def _interrupting(self, at: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(at - self.clock()):
                yield
        except TimeoutError:
            raise self.error from None


NO_DEADLINE: Final = Deadline(None, math.inf, time.monotonic)


P = ParamSpec("P")

# Texts of more characters than this together are worked on in a thread: on the event loop they would delay all other
# answers for longer than a change of threads takes.
INLINE_CHARACTERS = 2000
# Threads of their own for each kind of heavy work: however much there is of one, the others and the default threads,
# which serve files and short tasks, stay free.
PLAIN_TEXTS = ThreadPoolExecutor(4, "plain-texts")
PROTECTED_TEXTS = ThreadPoolExecutor(2, "protected-texts")
GLOSSARIES = ThreadPoolExecutor(1, "glossaries")


class Runner(Protocol):
    """Runs a stage of the pipeline."""

    def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Return the result of `work`."""
        ...


async def run_inline(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run on the event loop."""
    return work(*args, **kwargs)


class ThreadRunner:
    """Runs work in a thread until its call ends: by its deadline, or because the awaiting task is cancelled.

    The caller does not wait for the thread, which ends at its next `checkpoint`, and does not begin work of a call that
    has ended while it waited for a thread. Raises `DeadlineExceeded`.
    """

    def __init__(self, threads: ThreadPoolExecutor, deadline: Deadline) -> None:
        self._threads = threads
        self._deadline = deadline

    async def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `work`."""
        call = self._deadline.for_one_task()

        def run() -> T:
            call.check()
            with interrupted_by(call.check):
                return work(*args, **kwargs)

        loop = asyncio.get_running_loop()
        async with call.interrupts():
            try:
                return await loop.run_in_executor(self._threads, run)
            except asyncio.CancelledError:
                call.is_abandoned = True
                raise


run_on_glossary_thread = ThreadRunner(GLOSSARIES, NO_DEADLINE)


def runner_for(
    num_characters: int, is_plain: bool, deadline: Deadline, inline_characters: float = INLINE_CHARACTERS
) -> Runner:
    """Return the runner for texts of this length: inline up to `inline_characters`."""
    if num_characters <= inline_characters:
        return run_inline
    return ThreadRunner(PLAIN_TEXTS if is_plain else PROTECTED_TEXTS, deadline)


async def all_or_none(parts: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """Return all results. The first error cancels the others and is raised."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
