"""The time that one call has, and whether its answer is still awaited."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, TypeVar

from server.interface.errors import ClientGone, DeadlineExceeded
from server.translation.types import Phases, one_after_the_other

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
        self.phases = phases if self.phases is None else one_after_the_other(self.phases, phases)

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
