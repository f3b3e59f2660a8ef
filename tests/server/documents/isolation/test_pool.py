"""Processes for documents, replaced by objects that record what happens to them."""

import asyncio
from collections.abc import Awaitable, Callable

from server.documents.isolation.pool import RunningSlots


async def _rest() -> None:
    """Let the reserve start."""
    for _ in range(5):
        await asyncio.sleep(0)


def _run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_documents_that_compute_for_long_give_as_many_slots_to_others_as_there_are() -> None:
    async def scenario() -> None:
        slots = RunningSlots(1)
        running: list[str] = []
        moves: dict[str, Callable[[], None]] = {}
        ends = {name: asyncio.Event() for name in "abcd"}

        async def document(name: str) -> None:
            async with slots.slot() as move:
                running.append(name)
                moves[name] = move
                await ends[name].wait()
            running.remove(name)

        tasks = []
        for name in "abcd":
            tasks.append(asyncio.create_task(document(name)))
            await _rest()
        assert running == ["a"]
        moves["a"]()
        moves["a"]()  # the same document needs one slot
        await _rest()
        assert running == ["a", "b"]
        moves["b"]()  # no slot for another long document
        await _rest()
        assert running == ["a", "b"]
        ends["a"].set()
        await _rest()
        assert running == ["b"]
        moves["b"]()
        await _rest()
        assert running == ["b", "c"]
        for each in ends.values():
            each.set()
        await asyncio.gather(*tasks)
        assert running == []

    _run(scenario)
