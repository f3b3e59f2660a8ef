import numpy as np
import pytest

from server.interface.request import Completion, FinishReason, Request, SentenceParams, Timings
from server.workers.pending_call import PendingCall
from tests.fakes.event_loop import in_event_loop


def _completion(request: Request, reason: FinishReason = FinishReason.STOP) -> Completion:
    return Completion(request, [], reason)


@pytest.fixture
def requests() -> list[Request]:
    return [Request(np.array([token, 0], np.int32), SentenceParams(), Timings(0.0)) for token in (5, 6, 7)]


@in_event_loop
async def test_completions_are_in_the_order_of_the_requests(requests: list[Request]) -> None:
    call = PendingCall(requests)
    counted: list[int] = []
    call.on_completed = counted.append
    call.add([_completion(requests[2])])
    assert [call.has_completed(each) for each in requests] == [False, False, True]
    call.add([_completion(requests[2], FinishReason.LENGTH), _completion(requests[0])])
    call.add([])
    call.add([_completion(requests[1])])
    done = await call.completions()
    assert [each.request for each in done] == requests
    assert done[2].finish_reason == FinishReason.STOP, "the first completion of a request counts"
    assert counted == [1, 1, 0], "the last one ends the call instead"


@in_event_loop
async def test_a_call_without_requests_has_ended(requests: list[Request]) -> None:
    assert await PendingCall([]).completions() == []


@in_event_loop
async def test_completions_after_the_end_change_nothing(requests: list[Request]) -> None:
    call = PendingCall(requests[:1])
    call.add([_completion(requests[0])])
    call.add([_completion(requests[0], FinishReason.LENGTH)])
    assert [each.finish_reason for each in await call.completions()] == [FinishReason.STOP]
