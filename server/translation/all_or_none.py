"""Work of one call that runs at the same time."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TypeVar

T = TypeVar("T")


async def all_or_none(parts: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """Return all results. The first error cancels the others and is raised."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
