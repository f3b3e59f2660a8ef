"""Long work that does not hold others up: chunks on the event loop, and checks in threads whether it is still needed.

A thread cannot be cancelled from outside. A check is part of the context, so that functions at any depth call
`checkpoint` without a parameter.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

_Item = TypeVar("_Item")


async def yielding_chunks(items: Sequence[_Item], size: int) -> AsyncIterator[Sequence[_Item]]:
    """Yield parts of `size` items, and let other tasks run before each part but the first.

    Choose `size` for a few milliseconds of work.
    """
    for begin in range(0, len(items), size):
        if begin:
            await asyncio.sleep(0)
        yield items[begin : begin + size]


_check: ContextVar[Callable[[], None] | None] = ContextVar("interruption_check", default=None)


def checkpoint() -> None:
    """Raise the error of the current check, if there is one and the work must end."""
    check = _check.get()
    if check is not None:
        check()


@contextmanager
def interrupted_by(check: Callable[[], None]) -> Iterator[None]:
    """Let every `checkpoint` in this context call `check`."""
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)
