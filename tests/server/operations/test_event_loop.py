import asyncio
import gc
import sys
import weakref
from collections.abc import Iterator

import psutil
import pytest

from server.operations import event_loop
from server.operations.event_loop import collect_when_idle, defer_full_collections, watch_event_loop
from tests.fakes.event_loop import until


@pytest.fixture
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class _Node:
    """An object that refers to itself."""

    def __init__(self) -> None:
        self.itself = self


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


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock the test sets."""

    now = 100.0

    def time(self) -> float:
        return self.now


def test_the_lag_is_observed_several_times_a_second_and_logged_from_a_second_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lags: list[float] = []

    async def watched() -> None:
        task = asyncio.create_task(watch_event_loop(lags.append))
        for elapsed in (0.25, 1.2, 1.25):
            await asyncio.sleep(0)
            num_lags = len(lags)
            loop.now += elapsed
            await until(lambda: len(lags) > num_lags)  # noqa: B023 - awaited here
        task.cancel()

    loop = _Loop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(watched())
    assert lags == pytest.approx([0, 0.95, 1])
    [warning] = caplog.records
    assert (warning.message, vars(warning)["seconds"]) == ("event loop blocked", 1)
