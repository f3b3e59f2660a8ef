"""Delivery of completions to the event loop."""

import asyncio
from itertools import pairwise

from server.interface.request import Completion, FinishReason
from server.workers.delivery import settle
from server.workers.pending_call import PendingCall
from tests.fakes.engine import request


def test_calls_that_end_together_leave_the_event_loop_turns_for_what_arrives() -> None:
    order: list[str] = []

    async def wait(call: PendingCall) -> None:
        await call.completions()
        order.append("call")

    async def main() -> None:
        requests = [request([7, 2]) for _ in range(4)]
        calls = {PendingCall([each]): [Completion(each, [], FinishReason.STOP)] for each in requests}
        waiting = [asyncio.create_task(wait(call)) for call in calls]
        await asyncio.sleep(0)
        settle(calls)
        for _ in range(2 * len(requests)):
            await asyncio.sleep(0)
            order.append("arrival")
        await asyncio.gather(*waiting)

    asyncio.run(main())
    calls = [index for index, name in enumerate(order) if name == "call"]
    assert len(calls) == 4
    assert all("arrival" in order[first:second] for first, second in pairwise(calls))
