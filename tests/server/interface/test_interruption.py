import asyncio

import pytest

from server.interface.interruption import yielding_chunks


def test_other_tasks_run_between_the_parts() -> None:
    events: list[object] = []

    async def work() -> None:
        async for part in yielding_chunks(range(5), 2):
            events.append(list(part))  # noqa: PERF401 - the moment matters

    async def other() -> None:
        for _ in range(2):
            events.append("other")
            await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(work(), other())

    asyncio.run(both())
    assert events == [[0, 1], "other", [2, 3], "other", [4]]


def test_a_single_part_comes_at_once() -> None:
    async def parts() -> list[list[int]]:
        return [list(part) async for part in yielding_chunks([1, 2], 2)]

    pending = parts()
    with pytest.raises(StopIteration) as done:
        pending.send(None)
    assert done.value.value == [[1, 2]]
