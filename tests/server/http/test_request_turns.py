"""Turns of requests."""

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, cast

from server.http.request_turns import IS_LATE, RequestTurns
from tests.fakes.event_loop import in_event_loop

if TYPE_CHECKING:
    from uvicorn._types import HTTPScope


def _scope(path: str, method: str = "GET") -> "HTTPScope":
    return cast("HTTPScope", {"method": method, "raw_path": path.encode(), "state": {}})


def _order(*kinds: bool) -> list[tuple[str, int]]:
    """Begin probes (True) and other requests at once. Return each in the order of their turns, with its iteration."""

    async def run() -> list[tuple[str, int]]:
        loop, turns = asyncio.get_running_loop(), RequestTurns()
        begun: list[tuple[str, int]] = []
        iteration = 0

        def start(name: str) -> None:
            begun.append((name, iteration))

        def count() -> None:
            nonlocal iteration
            iteration += 1
            loop.call_soon(count)

        loop.call_soon(count)
        for number, is_probe in enumerate(kinds):
            name = f"{'probe' if is_probe else 'request'} {number}"
            turns.begin(lambda name=name: start(name), _scope("/health/live" if is_probe else "/v1/models"))  # type: ignore[misc]
        for _ in range(2 * len(kinds)):
            await asyncio.sleep(0)
        return begun

    return asyncio.run(run())


def test_four_requests_begin_in_each_iteration_in_their_order() -> None:
    begun = _order(*[False] * 10)
    assert [name for name, _ in begun] == [f"request {number}" for number in range(10)]
    iterations = [iteration for _, iteration in begun]
    assert iterations[:4] == [0] * 4
    assert sorted(Counter(iterations).values()) == [2, 4, 4]


def test_a_probe_does_not_wait_behind_requests() -> None:
    begun = dict(_order(*[False] * 48, True, False))
    assert begun["probe 48"] == 0
    assert begun["request 47"] < begun["request 49"]


def test_requests_are_late_while_earlier_ones_have_waited_too_long_for_their_turn() -> None:
    begun: list[str] = []

    async def run() -> tuple[list[bool], list[bool]]:
        turns = RequestTurns(max_seconds=0.1)
        for number in range(20):
            turns.begin(lambda number=number: begun.append(str(number)), _scope("/v1/translate", "POST"))  # type: ignore[misc]

        def late(method: str) -> bool:
            scope = _scope("/v1/translate", method)
            turns.begin(lambda: begun.append(method), scope)
            return IS_LATE in scope["state"]

        during = []
        for _ in range(5):  # the event loop begins nothing meanwhile; a burst may wait for 0.3 s
            time.sleep(0.15)  # noqa: ASYNC251 - holds it on purpose
            during.append(late("POST"))
        assert not late("GET")
        assert begun == ["0", "1", "2", "3", *["POST"] * sum(during)]  # late ones begin at once
        for _ in range(20):
            await asyncio.sleep(0)
        return during, [late("POST") for _ in range(3)]

    during, afterwards = asyncio.run(run())
    assert not during[0]
    assert during[-1]
    assert not any(afterwards)


@in_event_loop
async def test_without_a_limit_no_request_is_late() -> None:
    turns, scope = RequestTurns(), _scope("/v1/models", "POST")
    for _ in range(8):  # more than begin at once
        turns.begin(lambda: None, scope)
        time.sleep(0.1)  # noqa: ASYNC251 - a burst may wait for 0.3 s
    assert IS_LATE not in scope["state"]
