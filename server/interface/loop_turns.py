"""Turns of long work on the event loop: without them, a call of 50,000 sentences delays others by 0.25 s."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

T = TypeVar("T")


async def in_turns(items: Sequence[T], size: int) -> AsyncIterator[Sequence[T]]:
    """Yield parts of `size` items, and let other tasks run before each part but the first.

    Choose `size` for a few milliseconds of work.
    """
    for begin in range(0, len(items), size):
        if begin:
            await asyncio.sleep(0)
        yield items[begin : begin + size]
