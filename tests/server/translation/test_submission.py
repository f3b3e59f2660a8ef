"""Requests of a call and their completions: order, failures and times."""

import asyncio
import math
from collections.abc import Sequence

import numpy as np
import pytest

from server.interface.errors import DeadlineExceeded, Draining, EngineFailed
from server.interface.request import Completion, FinishReason, Hypothesis, Request, SentenceParams, Timings
from server.translation.execution import Deadline
from server.translation.submission import (
    Submission,
    mean_score,
    num_tokens,
    sentence_tokens,
)
from server.translation.types import Phases, TokenCounts
from tests.fakes.engine import FakeClock

STOPPED = Hypothesis([5, 6], -1.0, -0.5, FinishReason.STOP)


class Engine:
    """Completes requests in the order of their ids, with fixed times, or with this completion."""

    def __init__(self, clock: FakeClock, failure: Completion | None = None) -> None:
        self.received: list[Request] = []
        self._clock = clock
        self._failure = failure

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the completions."""
        self.received = list(requests)
        for index, request in enumerate(requests):
            timings = request.timings
            timings.admitted = timings.arrived + 1
            timings.encoded = timings.admitted + 2 + index
            timings.assigned = timings.encoded
            timings.first_token = timings.assigned + 0.5
            timings.finished = timings.assigned + 4
        self._clock.now += 10
        done = [self._failure or Completion(request, [STOPPED], FinishReason.STOP) for request in requests]
        return sorted(done, key=lambda each: each.request.id)


def _requests(*lengths: int) -> list[Request]:
    return [Request(np.zeros(length, np.int32), SentenceParams(), Timings(0.0)) for length in lengths]


def _submission(clock: FakeClock, engine: Engine, *, accepted_earlier: bool = False) -> Submission:
    deadline = Deadline.of(clock.now + 100, clock.now, clock)
    return Submission(engine, deadline, clock.now - 3, accepted_earlier=accepted_earlier)  # type: ignore[arg-type]


def test_long_sentences_are_submitted_first_and_all_return_in_their_order() -> None:
    clock = FakeClock()
    engine = Engine(clock)
    requests = _requests(2, 9, 4)
    begun = clock.now
    completions = asyncio.run(_submission(clock, engine).submit(requests))
    assert [len(each.source) for each in engine.received] == [9, 4, 2]
    assert list(completions) == [each.id for each in requests]
    assert {each.timings.arrived for each in requests} == {begun}
    assert not any(each.accepted_earlier for each in requests)


def test_the_times_of_rounds_are_added_and_those_of_sentences_are_not() -> None:
    async def scenario() -> None:
        clock = FakeClock()
        submission = _submission(clock, Engine(clock))
        await submission.submit(_requests(3, 2))
        assert submission.phases == Phases(3.0, 1.0, 3.0, 4.0, pytest.approx(4.5))  # type: ignore[arg-type]
        clock.now += 2
        submission.next_round()
        clock.now += 0.25
        again = _requests(1)
        await submission.submit(again)
        assert again[0].accepted_earlier
        assert submission.phases == Phases(3.25, 2.0, 5.0, 8.0, pytest.approx(4.5))  # type: ignore[arg-type]
        submission.next_round()
        clock.now += 1
        assert await submission.submit([]) == {}
        assert submission.phases.tokenize_seconds == 4.25

    asyncio.run(scenario())


def test_blocks_are_submitted_in_their_order() -> None:
    clock = FakeClock()
    engine = Engine(clock)
    blocks = _requests(2, 9), _requests(4, 5)
    completions = asyncio.run(_submission(clock, engine).submit(*blocks))
    assert [len(each.source) for each in engine.received] == [9, 2, 5, 4]
    assert list(completions) == [each.id for block in blocks for each in block]


def test_the_rounds_of_blocks_are_beside_each_other() -> None:
    async def scenario() -> None:
        clock = FakeClock()
        deadline = Deadline.of(clock.now + 100, clock.now, clock)
        submission = Submission(Engine(clock), deadline, clock.now - 3)  # type: ignore[arg-type]
        blocks = _requests(3), _requests(2)
        completions = await submission.submit(*blocks)
        parts = [submission.part({each.id: completions[each.id] for each in block}) for block in blocks]
        for part, seconds in zip(parts, (0.5, 0.25), strict=True):
            part.next_round()
            clock.now += seconds
            again = _requests(1)
            await part.submit(again)
            assert again[0].accepted_earlier
            assert again[0].round_of == next(iter(completions.values())).request.timings.arrived
        submission.join(parts)
        # The encoder run of the second block took a second longer, the texts of the first block 0.25 s.
        assert submission.phases == Phases(3.5, 2.0, 5.0, 8.0, pytest.approx(4.5))  # type: ignore[arg-type]
        assert deadline.phases == submission.phases

    asyncio.run(scenario())


def test_the_second_step_of_an_accepted_request_is_not_rejected() -> None:
    clock = FakeClock()
    requests = _requests(1)
    asyncio.run(_submission(clock, Engine(clock), accepted_earlier=True).submit(requests))
    assert requests[0].accepted_earlier


@pytest.mark.parametrize(
    ("reason", "error", "raised"),
    [
        (FinishReason.CANCELLED, RuntimeError("secret"), EngineFailed),
        (FinishReason.DEADLINE, None, DeadlineExceeded),
        (FinishReason.CANCELLED, None, Draining),
    ],
)
def test_a_request_without_an_answer_is_an_error(
    reason: FinishReason, error: Exception | None, raised: type[Exception]
) -> None:
    clock = FakeClock()
    [request] = _requests(1)
    engine = Engine(clock, Completion(request, [], reason, error))
    with pytest.raises(raised) as failure:
        asyncio.run(_submission(clock, engine).submit([request]))
    assert "secret" not in str(failure.value)


def test_the_first_token_is_that_of_the_first_round_with_one() -> None:
    first, second = Phases(1, 2, 3, 4, 0.0), Phases(10, 20, 30, 40, 5)
    assert first.then(second) == Phases(11, 22, 33, 44, 5)
    assert second.then(Phases(0, 0, 0, 0, 7)).time_to_first_token_seconds == 5


def test_the_end_counts_where_it_was_generated() -> None:
    cut = Hypothesis([5, 6], -1.0, -0.5, FinishReason.LENGTH)
    assert (num_tokens(STOPPED), num_tokens(cut)) == (3, 2)
    [first, second] = _requests(4, 2)
    done = [Completion(first, [STOPPED, cut], FinishReason.STOP), Completion(second, [cut], FinishReason.LENGTH)]
    assert sentence_tokens(done) == TokenCounts.of([(4, 3), (2, 2)])


def test_a_mean_score_is_weighted_by_lengths() -> None:
    assert mean_score([-1.0, -3.0], [3, 1]) == -1.5
    assert mean_score([-1.0, -3.0], [0, 0]) == -2.0
    assert math.isnan(mean_score([], []))
