"""Threads for the stages of the pipeline: short texts are processed on the event loop, long ones on worker threads."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

from server.interface.interruption import interrupted_by
from server.translation.deadline import NO_DEADLINE, Deadline

P = ParamSpec("P")
T = TypeVar("T")

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
