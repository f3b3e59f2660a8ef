import asyncio
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from server.interface.errors import ClientGone, DeadlineExceeded
from server.interface.interruption import checkpoint
from server.translation.execution import INLINE_CHARACTERS, NO_DEADLINE, Deadline, ThreadRunner, run_inline, runner_for
from tests.fakes.engine import FakeClock


def test_a_deadline_has_passed_behind_its_moment() -> None:
    clock = FakeClock()
    deadline = Deadline.of(clock.now + 5, clock.now + 2, clock)
    assert deadline.allowed_seconds == 3
    clock.now += 5
    deadline.check()
    clock.now += 0.5
    with pytest.raises(DeadlineExceeded, match="within 3 seconds"):
        deadline.check()


def test_items_are_yielded_until_the_deadline() -> None:
    clock = FakeClock()
    deadline = Deadline.of(clock.now + 2, clock.now, clock)
    items = iter(deadline.in_time("abc"))
    assert next(items) == "a"
    clock.now += 2
    assert next(items) == "b"
    clock.now += 0.5
    with pytest.raises(DeadlineExceeded):
        next(items)
    assert "".join(Deadline.of(None, 0, clock).in_time("abc")) == "abc"


def test_work_that_is_abandoned_ends_without_ending_other_work() -> None:
    whole = Deadline.of(None, 0, FakeClock())
    assert math.isinf(whole.allowed_seconds)
    part = whole.for_one_task()
    part.is_abandoned = True
    whole.check()
    with pytest.raises(ClientGone):
        part.check()
    assert Deadline.of(7, 3, FakeClock()).for_one_task().at == 7


def test_a_wait_ends_at_the_deadline() -> None:
    async def scenario() -> None:
        clock = FakeClock()
        with pytest.raises(DeadlineExceeded, match="within 4 seconds"):
            async with Deadline.of(clock.now, clock.now - 4, clock).interrupts():
                await asyncio.sleep(60)
        async with Deadline.of(clock.now + 60, clock.now, clock).interrupts():
            await asyncio.sleep(0)
        async with NO_DEADLINE.interrupts():
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_short_texts_are_processed_on_the_event_loop() -> None:
    assert runner_for(INLINE_CHARACTERS, True, NO_DEADLINE) is run_inline
    assert runner_for(INLINE_CHARACTERS + 1, True, NO_DEADLINE) is not run_inline
    assert runner_for(0, True, NO_DEADLINE, -1) is not run_inline

    async def names() -> list[str]:
        def name() -> str:
            return threading.current_thread().name

        return [await runner_for(9999, is_plain, NO_DEADLINE)(name) for is_plain in (True, False)]

    plain, protected = asyncio.run(names())
    assert plain.startswith("plain-texts")
    assert protected.startswith("protected-texts")


def test_work_of_a_call_that_has_ended_does_not_begin() -> None:
    begun: list[int] = []

    async def scenario() -> None:
        clock = FakeClock()
        with ThreadPoolExecutor(1) as threads:
            release = threading.Event()
            blocked = asyncio.get_running_loop().run_in_executor(threads, release.wait)
            waiting = asyncio.create_task(ThreadRunner(threads, Deadline.of(None, 0, clock))(begun.append, 1))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            release.set()
            await blocked

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert begun == []


def test_work_ends_at_its_next_checkpoint_once_nobody_waits_for_it() -> None:
    ended: list[type] = []

    async def scenario() -> None:
        entered, release = threading.Event(), threading.Event()

        def work() -> None:
            entered.set()
            release.wait(60)
            try:
                checkpoint()
            except Exception as error:
                ended.append(type(error))
                raise

        with ThreadPoolExecutor(1) as threads:
            task = asyncio.create_task(ThreadRunner(threads, NO_DEADLINE)(work))
            await asyncio.to_thread(entered.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            release.set()

    asyncio.run(asyncio.wait_for(scenario(), 20))
    assert ended == [ClientGone]


def test_work_behind_its_deadline_is_an_error() -> None:
    async def scenario() -> None:
        clock = FakeClock()
        deadline = Deadline.of(clock.now + 60, clock.now, clock)
        with ThreadPoolExecutor(1) as threads:

            def work() -> None:
                clock.now += 61
                checkpoint()

            with pytest.raises(DeadlineExceeded):
                await ThreadRunner(threads, deadline)(work)

    asyncio.run(asyncio.wait_for(scenario(), 20))
