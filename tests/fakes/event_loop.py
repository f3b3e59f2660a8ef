"""Tests that are coroutines."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from itertools import count
from typing import ParamSpec

Parameters = ParamSpec("Parameters")


def in_event_loop(test: Callable[Parameters, Coroutine[None, None, None]]) -> Callable[Parameters, None]:
    """Run a test that is a coroutine in an event loop of its own."""

    @wraps(test)
    def run(*arguments: Parameters.args, **named: Parameters.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks, threads and processes run until the condition holds."""
    async with asyncio.timeout(60):
        for turn in count():
            if condition():
                return
            # Another task needs a few turns; after that, leave the processor to the process that is awaited.
            await asyncio.sleep(0 if turn < 100 else 0.001)
