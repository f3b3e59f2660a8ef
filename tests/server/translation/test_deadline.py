import asyncio
import math

import pytest

from server.interface.errors import ClientGone, DeadlineExceeded
from server.translation.deadline import NO_DEADLINE, Deadline
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
