"""Turns of requests."""

import asyncio
from collections import Counter

from server.http.request_turns import RequestTurns


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
            turns.begin(lambda name=name: start(name), is_probe=is_probe)  # type: ignore[misc]
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
