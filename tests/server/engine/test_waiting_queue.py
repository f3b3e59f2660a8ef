"""The two lines of the queue, and work in source tokens."""

import pytest

from server.engine.fair_shares import RestClock
from server.engine.scheduler import Scheduler, SchedulerLimits
from server.engine.waiting_queue import WaitingQueue, num_tokens
from server.interface.errors import QueueFull
from server.interface.request import Request, SentenceParams
from tests.fakes.engine import request

NOW = 100.0


def _requests(number: int, source_len: int, beam_size: int = 1) -> list[Request]:
    made = [request([5] * source_len, SentenceParams(beam_size=beam_size)) for _ in range(number)]
    for each in made:
        each.timings.arrived = 0.0
    return made


def _taken(queue: WaitingQueue) -> list[Request]:
    taken = []
    while queue:
        head = queue.head
        assert queue.take(NOW) is head
        taken.append(head)
    return taken


def test_rests_take_turns_with_beginnings_by_their_tokens() -> None:
    queue = WaitingQueue(RestClock())
    rests, beginnings = _requests(3, source_len=6), _requests(4, source_len=3)
    for rest in rests:
        queue.add(rest, 1.0, is_rest=True)
    for beginning in beginnings:
        queue.add(beginning, 2.0, is_rest=False)
    assert (len(queue), queue.num_beginnings, queue.num_rows, queue.num_tokens) == (7, 4, 7, 30)
    assert _taken(queue) == [rests[0], *beginnings[:2], rests[1], *beginnings[2:], rests[2]]
    assert (queue.num_rows, queue.num_tokens) == (0, 0)


def test_rests_come_at_once_if_nothing_else_waits_and_never_before_their_time() -> None:
    queue = WaitingQueue(RestClock())
    late, *others = _requests(4, source_len=6)
    for rest in others:
        queue.add(rest, 1.0, is_rest=True)
    assert _taken(queue) == others
    queue.add(late, 3.0, is_rest=True)
    for beginning in others:
        queue.add(beginning, 2.0, is_rest=False)
    assert _taken(queue) == [*others, late]


def test_a_rest_that_was_alone_is_ahead_of_its_time_by_a_second_at_most() -> None:
    queue = WaitingQueue(RestClock())
    first, second = _requests(2, source_len=6)
    queue.add(first, NOW + 10, is_rest=True)
    queue.add(second, NOW + 10, is_rest=True)
    assert queue.take(NOW) is first
    earlier, later = _requests(2, source_len=6)
    queue.add(earlier, NOW + 0.9, is_rest=False)
    queue.add(later, NOW + 1.1, is_rest=False)
    assert _taken(queue) == [earlier, second, later]


def test_the_tokens_before_a_beginning_are_those_of_beginnings_and_as_many_of_rests() -> None:
    queue = WaitingQueue(RestClock())
    for place, beginning in enumerate(_requests(3, source_len=4, beam_size=2)):
        queue.add(beginning, 1.0 + place, is_rest=False)
    assert num_tokens(beginning) == 8
    assert [queue.num_tokens_before(at) for at in (1.0, 1.5, 9.0)] == [0, 8, 24]
    [rest] = _requests(1, source_len=10)
    queue.add(rest, 5.0, is_rest=True)
    assert [queue.num_tokens_before(at) for at in (1.0, 1.5, 9.0)] == [0, 16, 34]
    assert queue.remove({rest, beginning}) == [beginning, rest]
    assert (queue.num_rows, queue.num_tokens, queue.num_tokens_before(9.0)) == (4, 16, 16)


def test_few_source_tokens_are_encoded_ahead() -> None:
    scheduler = Scheduler(SchedulerLimits(1, 2, 100, 100, max_rows_ahead=20))
    long = _requests(6, source_len=30)
    scheduler.submit(long)
    assert scheduler.admit(0, NOW).admitted == long[:3]
    assert scheduler.admit(0, NOW).admitted == long[3:4]  # then 60 tokens wait for rows, and 50 are enough
    assert scheduler.admit(0, NOW).admitted == []
    scheduler.retire(0, long[:1], NOW)
    assert scheduler.admit(0, NOW).admitted == long[4:5]


def test_the_expected_wait_is_that_of_the_source_tokens_before() -> None:
    scheduler = Scheduler(SchedulerLimits(1, 2, 1000, 100, max_queue_seconds=1.0))
    scheduler.submit(_requests(5, source_len=3))
    for second in range(2):  # nine tokens in a second, behind the first request
        scheduler.retire(0, scheduler.admit(0, NOW + second).admitted, NOW + second)
    scheduler.submit(_requests(4, source_len=90))
    assert len(scheduler.admit(0, NOW + 1).admitted) == 2
    scheduler.check_admission(NOW + 2)  # too long for less than 0.3 s
    with pytest.raises(QueueFull, match=r"the expected wait is 30\.00 s of at most 1 s; retry after 30 s"):
        scheduler.check_admission(NOW + 2.4)
