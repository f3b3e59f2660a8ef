"""Tests that are coroutines."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import ParamSpec

Parameters = ParamSpec("Parameters")


def in_event_loop(test: Callable[Parameters, Coroutine[None, None, None]]) -> Callable[Parameters, None]:
    """Run a test that is a coroutine in an event loop of its own."""

    @wraps(test)
    def run(*arguments: Parameters.args, **named: Parameters.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks and threads run until the condition holds."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - for any condition
            await asyncio.sleep(0)
