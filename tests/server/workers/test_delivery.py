"""Delivery of completions to the event loop."""

import asyncio
from itertools import pairwise

from server.engine.stream_tracker import StreamUpdate
from server.interface.request import Completion, FinishReason, Hypothesis, Request
from server.workers.delivery import settle, stream
from server.workers.pending_call import PendingCall
from tests.fakes.engine import request
from tests.fakes.event_loop import in_event_loop


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


def _streaming() -> tuple[Request, list[tuple[list[int], bool]]]:
    """Return a request, and what its stream receives."""
    received: list[tuple[list[int], bool]] = []
    streaming = request([7, 2])
    streaming.on_progress = lambda tokens, is_complete: received.append((tokens, is_complete))
    return streaming, received


def test_a_stream_receives_tokens_that_it_has_not_received() -> None:
    streaming, received = _streaming()
    plain = request([8, 2])
    stream([StreamUpdate(streaming, [1]), StreamUpdate(plain, [5]), StreamUpdate(streaming, [1, 2])])
    for retried in ([1], [1, 2], [1, 2, 3]):  # by another engine, after the death of the first
        stream([StreamUpdate(streaming, retried)])
    assert received == [([1], False), ([1, 2], False), ([1, 2, 3], False)]


@in_event_loop
async def test_a_stream_receives_the_whole_answer_once() -> None:
    streaming, received = _streaming()
    failed, failures = _streaming()
    completed: list[Completion] = []
    streaming.on_completed = failed.on_completed = completed.append
    plain = request([9, 2])
    call = PendingCall([streaming, failed, plain])
    whole = Completion(streaming, [Hypothesis([1, 2], 0.0, 0.0, FinishReason.STOP)], FinishReason.STOP)
    settle({call: [whole, Completion(plain, [], FinishReason.STOP)]})
    settle({call: [whole, Completion(failed, [], FinishReason.CANCELLED)]})
    assert received == [([1, 2], True)]
    assert failures == []
    assert completed == [whole]
    assert [each.request for each in await call.completions()] == [streaming, failed, plain]
