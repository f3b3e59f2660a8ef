"""Threads for the stages of the pipeline: short texts are processed on the event loop, long ones on worker threads."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Texts of more characters than this together are worked on in a thread: on the event loop they would delay all other
# answers for longer than a change of threads takes.
INLINE_CHARACTERS = 2000
# Threads of their own for protected texts: however many of them are long, the default threads stay free.
PROTECTED_TEXTS = ThreadPoolExecutor(2, "protected-texts")


class Runner(Protocol):
    """Runs a stage of the pipeline."""

    def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
        """Return the result of `work`."""
        ...


async def run_inline(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run on the event loop."""
    return work(*args, **kwargs)


async def run_in_protected_thread(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run on one of the threads for protected texts."""
    return await asyncio.get_running_loop().run_in_executor(PROTECTED_TEXTS, partial(work, *args, **kwargs))


def runner_for(num_characters: int, inline_characters: float, is_plain: bool) -> Runner:
    """Return the runner for texts of this length: inline up to `inline_characters`."""
    if num_characters <= inline_characters:
        return run_inline
    return asyncio.to_thread if is_plain else run_in_protected_thread
