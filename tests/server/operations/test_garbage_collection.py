import asyncio
import gc
import sys
import weakref
from collections.abc import Iterator

import psutil
import pytest

from server.operations import event_loop
from server.operations.event_loop import collect_when_idle, defer_full_collections, is_due


@pytest.fixture
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.parametrize(
    ("num_waiting", "seconds", "is_idle", "is_light", "expected"),
    [
        (10, 600, True, True, True),
        (9, 600, True, True, False),
        (10, 599, True, True, False),
        (299, 600, False, True, False),
        (300, 1, False, True, True),
        (300, 1, False, False, False),
        (30_000, 1, False, False, True),
    ],
)
def test_an_idle_server_collects_and_a_busy_one_beside_small_requests(
    num_waiting: int, seconds: float, is_idle: bool, is_light: bool, expected: bool
) -> None:
    assert is_due(num_waiting, seconds, is_idle=is_idle, is_light=is_light) == expected


class _Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.usefixtures("thresholds")
def test_young_objects_are_collected_again_after_the_start() -> None:
    gc.disable()
    defer_full_collections()
    assert gc.isenabled()


@pytest.mark.usefixtures("thresholds")
def test_old_cycles_are_freed_by_the_task_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(event_loop, "is_due", lambda *_, is_idle, is_light: is_idle)
    defer_full_collections()
    node = _Node()
    freed = weakref.ref(node)
    gc.collect(1)  # the cycle is among the old objects now
    del node
    for _ in range(20):
        gc.collect(1)
    assert freed() is not None

    async def run() -> None:
        is_idle = False
        task = asyncio.create_task(collect_when_idle(lambda: is_idle, lambda: False))
        for _ in range(3):
            await asyncio.sleep(0)
        assert freed() is not None
        is_idle = True
        for _ in range(3):
            await asyncio.sleep(0)
        assert freed() is None
        task.cancel()

    asyncio.run(run())


@pytest.mark.skipif(sys.platform != "linux", reason="other allocators return memory by themselves, or never")
@pytest.mark.usefixtures("thresholds")
def test_memory_freed_by_an_idle_server_returns_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(event_loop, "is_due", lambda *_, is_idle, is_light: is_idle)
    memory = psutil.Process().memory_info
    blocks = [bytearray(2000) for _ in range(40_000)]
    last = bytearray(2000)  # the allocator keeps everything below it
    full = memory().rss
    del blocks
    assert full - memory().rss < 20_000_000

    async def run() -> None:
        task = asyncio.create_task(collect_when_idle(lambda: True, lambda: True))
        async with asyncio.timeout(60):
            while full - memory().rss < 60_000_000:  # noqa: ASYNC110 - a thread returns it
                await asyncio.sleep(0)
        task.cancel()

    asyncio.run(run())
    assert last
