"""Turns of requests that arrive at the same time."""

import asyncio
import time
from collections import Counter

from starlette.types import Message

from server.http.middleware.gate import Arrival, Turns
from server.interface.errors import QueueFull
from tests.fakes.event_loop import in_event_loop


async def _receive() -> Message:
    raise AssertionError("nothing is read at the gate")


def _arrival(path: str, method: str = "GET") -> Arrival:
    return Arrival({"type": "http", "method": method, "path": path}, _receive, (path,))


def _order(*kinds: bool) -> list[tuple[str, int]]:
    """Begin probes (True) and other requests at once. Return each in the order of their turns, with its iteration."""

    async def run() -> list[tuple[str, int]]:
        loop, turns = asyncio.get_running_loop(), Turns()
        begun: list[tuple[str, int]] = []
        iteration = 0

        def count() -> None:
            nonlocal iteration
            iteration += 1
            loop.call_soon(count)

        async def arrive(name: str, path: str) -> None:
            waiting = turns(_arrival(path))
            if waiting is not None:
                await waiting
            begun.append((name, iteration))

        loop.call_soon(count)
        tasks = [
            asyncio.create_task(arrive(f"{'probe' if is_probe else 'request'} {number}", path))
            for number, is_probe in enumerate(kinds)
            for path in ["/health/live" if is_probe else "/v1/models"]
        ]
        await asyncio.gather(*tasks)
        return begun

    return asyncio.run(run())


def test_four_requests_begin_in_each_iteration_in_their_order() -> None:
    begun = _order(*[False] * 10)
    assert [name for name, _ in begun] == [f"request {number}" for number in range(10)]
    assert max(Counter(iteration for _, iteration in begun).values()) == 4


def test_a_probe_does_not_wait_behind_requests() -> None:
    begun = dict(_order(*[False] * 48, True, False))
    assert begun["probe 48"] == begun["request 0"]
    assert begun["request 47"] <= begun["request 49"]


@in_event_loop
async def test_a_request_whose_client_has_left_takes_no_turn() -> None:
    turns = Turns()
    waiting = [turn for turn in [turns(_arrival("/v1/models")) for _ in range(9)] if turn is not None]
    assert len(waiting) == 5
    for turn in waiting[:4]:
        assert isinstance(turn, asyncio.Future)
        turn.cancel()
    async with asyncio.timeout(60):
        await waiting[4]


def test_requests_are_late_while_earlier_ones_have_waited_too_long_for_their_turn() -> None:
    async def run() -> tuple[list[bool], list[bool]]:
        turns = Turns(max_seconds=0.1)
        for _ in range(20):
            turns(_arrival("/v1/translate", "POST"))

        def late(method: str) -> bool:
            try:
                turns(_arrival("/v1/translate", method))
            except QueueFull as full:
                return full.retry_after_seconds == 1.0
            return False

        during = []
        for _ in range(5):  # the event loop begins nothing meanwhile; a burst may wait for 0.3 s
            time.sleep(0.15)  # noqa: ASYNC251 - holds it on purpose
            during.append(late("POST"))
        assert not late("GET")
        for _ in range(20):
            await asyncio.sleep(0)
        return during, [late("POST") for _ in range(3)]

    during, afterwards = asyncio.run(run())
    assert not during[0]
    assert during[-1]
    assert not any(afterwards)


@in_event_loop
async def test_without_a_limit_no_request_is_late() -> None:
    turns = Turns()
    for _ in range(8):  # more than begin at once
        turns(_arrival("/v1/models", "POST"))
        time.sleep(0.1)  # noqa: ASYNC251 - a burst may wait for 0.3 s
