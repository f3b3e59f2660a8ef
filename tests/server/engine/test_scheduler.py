import threading
import time

import pytest

from server.engine.scheduler import Admission, ArrivalQueue, Scheduler, SchedulerLimits
from server.interface.errors import QueueFull
from server.interface.request import FinishReason, Request, SentenceParams
from tests.fakes.engine import request

NOW = 100.0


def _scheduler(
    num_replicas: int = 1, max_rows: int = 8, max_encoder_tokens: int = 1000, max_waiting: int = 100
) -> Scheduler:
    return Scheduler(SchedulerLimits(num_replicas, max_rows, max_encoder_tokens, max_waiting))


def _request(beam_size: int = 1, source_len: int = 3, deadline: float | None = None, arrived: float = 0.0) -> Request:
    asked = request([5] * source_len, SentenceParams(beam_size=beam_size), deadline)
    asked.timings.arrived = arrived
    return asked


def _submitted(scheduler: Scheduler, *requests: Request) -> list[Request]:
    scheduler.submit(requests)
    return list(requests)


def _admitted(scheduler: Scheduler, replica: int = 0, now: float = NOW) -> list[Request]:
    admission = scheduler.admit(replica, now)
    assert admission.dropped == []
    return admission.admitted


def test_requests_are_admitted_in_the_order_of_their_arrival() -> None:
    scheduler = _scheduler()
    first, second = (_submitted(scheduler, *(_request(arrived=at) for _ in range(3))) for at in (1.0, 2.0))
    assert _admitted(scheduler) == first + second
    assert _admitted(scheduler) == []
    assert (scheduler.num_waiting, scheduler.num_running) == (0, 6)


def test_a_short_call_passes_the_rest_of_a_long_one() -> None:
    scheduler = _scheduler(max_rows=100)
    page = _submitted(scheduler, *(_request(arrived=NOW) for _ in range(10)))
    one = _submitted(scheduler, _request(arrived=NOW + 0.12))
    another = _submitted(scheduler, _request(arrived=NOW + 1))
    assert _admitted(scheduler) == page[:3] + one + page[3:9] + another + page[9:]


def test_a_request_reserves_a_row_for_each_beam_until_it_is_retired() -> None:
    scheduler = _scheduler(max_rows=8)
    wide, narrow, late = _submitted(scheduler, _request(5), _request(3), _request(1))
    assert _admitted(scheduler) == [wide, narrow]
    assert scheduler.num_rows_reserved == 8
    assert _admitted(scheduler) == []
    scheduler.retire(0, [narrow], NOW)
    assert scheduler.num_rows_reserved == 5
    assert _admitted(scheduler) == [late]


def test_no_request_overtakes_a_beam_request_that_waits_for_rows() -> None:
    scheduler = _scheduler(max_rows=8)
    running, wide, narrow = _submitted(scheduler, _request(1), _request(8), _request(1))
    assert _admitted(scheduler) == [running]
    assert _admitted(scheduler) == []
    scheduler.retire(0, [running], NOW)
    assert _admitted(scheduler) == [wide]
    scheduler.retire(0, [wide], NOW)
    assert _admitted(scheduler) == [narrow]


def test_requests_are_admitted_ahead_of_free_rows_up_to_a_limit() -> None:
    scheduler = Scheduler(SchedulerLimits(1, 4, 1000, 100, max_rows_ahead=3))
    requests = _submitted(scheduler, *(_request(2) for _ in range(5)))
    assert _admitted(scheduler) == requests[:3]
    scheduler.retire(0, requests[:1], NOW)
    assert scheduler.admit(0, NOW, may_admit=False).admitted == []
    assert _admitted(scheduler) == requests[3:4]


def test_little_work_is_shared_evenly_among_the_replicas() -> None:
    scheduler = _scheduler(num_replicas=2, max_rows=8)
    requests = _submitted(scheduler, *(_request(2) for _ in range(4)))
    assert _admitted(scheduler, replica=0) == requests[:2]
    assert _admitted(scheduler, replica=0) == []
    assert _admitted(scheduler, replica=1) == requests[2:]


def test_a_replica_with_more_than_its_share_leaves_new_requests_to_the_other() -> None:
    scheduler = _scheduler(num_replicas=2, max_rows=8)
    _submitted(scheduler, _request(6))
    assert len(_admitted(scheduler, replica=0)) == 1
    [late] = _submitted(scheduler, _request(1))
    assert _admitted(scheduler, replica=0) == []
    assert _admitted(scheduler, replica=1) == [late]


def test_all_replicas_fill_up_when_there_is_much_work() -> None:
    scheduler = _scheduler(num_replicas=2, max_rows=4)
    _submitted(scheduler, *(_request() for _ in range(20)))
    assert [len(_admitted(scheduler, replica)) for replica in (0, 1)] == [4, 4]
    assert scheduler.num_waiting == 12


def test_an_admission_takes_no_more_source_tokens_than_its_budget() -> None:
    scheduler = _scheduler(max_encoder_tokens=14)
    requests = _submitted(scheduler, *(_request(source_len=length) for length in (3, 3, 8, 3, 3)))
    assert _admitted(scheduler) == requests[:3]
    assert _admitted(scheduler) == requests[3:]


def test_a_sentence_longer_than_the_budget_is_admitted_alone() -> None:
    scheduler = _scheduler(max_encoder_tokens=10)
    short, long, last = _submitted(scheduler, _request(source_len=3), _request(source_len=30), _request(source_len=3))
    assert _admitted(scheduler) == [short]
    assert _admitted(scheduler) == [long]
    assert _admitted(scheduler) == [last]


def test_a_full_queue_rejects_a_whole_call_with_its_size() -> None:
    scheduler = _scheduler(max_waiting=2)
    _submitted(scheduler, _request(), _request())
    with pytest.raises(QueueFull, match="the queue is full: 2 of 2 sentences waiting; retry after 1 s"):
        scheduler.submit([_request()])
    assert scheduler.num_waiting == 2


def test_requests_that_continue_an_accepted_call_are_not_rejected() -> None:
    scheduler = _scheduler(max_waiting=2)
    _submitted(scheduler, _request(), _request())
    second_leg = _request()
    second_leg.accepted_earlier = True
    scheduler.submit([second_leg])
    assert scheduler.num_waiting == 3


def _retry_after(scheduler: Scheduler) -> float:
    with pytest.raises(QueueFull) as full:
        scheduler.submit([_request()])
    return full.value.retry_after_seconds


def test_the_retry_time_is_that_of_the_queue_at_the_recent_pace() -> None:
    scheduler = _scheduler(max_rows=2, max_waiting=6)
    _submitted(scheduler, *(_request() for _ in range(10)))
    assert _retry_after(scheduler) == 1.0  # the pace is unknown
    for second in range(3):
        scheduler.retire(0, _admitted(scheduler), NOW + 4 * second)
    _submitted(scheduler, *(_request() for _ in range(5)))
    # Six ended within 8 seconds, five after the first: 1.6 seconds each, and nine wait.
    assert _retry_after(scheduler) == pytest.approx(9 * 8 / 5)


def test_the_retry_time_is_a_minute_at_most() -> None:
    scheduler = _scheduler(max_rows=2, max_waiting=2)
    _submitted(scheduler, *(_request() for _ in range(10)))
    for second in range(2):
        scheduler.retire(0, _admitted(scheduler), NOW + 1000 * second)
    assert _retry_after(scheduler) == 60.0


def test_idle_hours_do_not_count_into_the_pace() -> None:
    scheduler = _scheduler(max_rows=2, max_waiting=4)
    _submitted(scheduler, _request())
    scheduler.retire(0, _admitted(scheduler), NOW)
    _submitted(scheduler, *(_request() for _ in range(8)))
    for second in range(2):
        scheduler.retire(0, _admitted(scheduler), NOW + 36_000 + second)
    # Four ended within a second, three after the first, and four wait.
    assert _retry_after(scheduler) == pytest.approx(4 / 3)


def test_rows_of_a_cancelled_request_do_not_count_into_a_share() -> None:
    scheduler = _scheduler(num_replicas=2)
    first, wide, second = _submitted(scheduler, _request(1), _request(8), _request(1))
    scheduler.cancel([wide])
    assert scheduler.admit(0, NOW) == Admission([first], [(wide, FinishReason.CANCELLED)])
    assert scheduler.admit(1, NOW) == Admission([second], [])


def test_a_cancelled_request_that_waits_is_dropped_and_the_others_remain() -> None:
    scheduler = _scheduler()
    first, second, third = _submitted(scheduler, _request(), _request(2), _request())
    scheduler.cancel([second])
    assert scheduler.admit(0, NOW) == Admission([first, third], [(second, FinishReason.CANCELLED)])
    assert (scheduler.num_waiting, scheduler.num_running, scheduler.num_rows_reserved) == (0, 2, 2)


def test_a_cancelled_request_that_runs_is_dropped_by_its_own_replica_and_gives_its_rows_back() -> None:
    scheduler = _scheduler(num_replicas=2)
    [running] = _submitted(scheduler, _request(4))
    assert _admitted(scheduler, replica=1) == [running]
    scheduler.cancel([running])
    assert scheduler.admit(0, NOW) == Admission([], [])
    assert scheduler.num_rows_reserved == 4
    assert scheduler.admit(1, NOW) == Admission([], [(running, FinishReason.CANCELLED)])
    assert (scheduler.num_running, scheduler.num_rows_reserved) == (0, 0)
    assert scheduler.admit(1, NOW) == Admission([], [])


def test_the_rows_of_a_dropped_request_are_reserved_in_the_same_admission() -> None:
    scheduler = _scheduler(max_rows=4)
    running, waiting = _submitted(scheduler, _request(4), _request(4))
    assert _admitted(scheduler) == [running]
    scheduler.cancel([running])
    assert scheduler.admit(0, NOW) == Admission([waiting], [(running, FinishReason.CANCELLED)])


@pytest.mark.parametrize("is_running", [False, True])
def test_a_request_is_dropped_when_its_deadline_has_come_and_not_before(is_running: bool) -> None:
    scheduler = _scheduler(max_rows=8)
    blocking, late = _request(4 if is_running else 8), _request(4, deadline=NOW + 5)
    _submitted(scheduler, blocking, late)
    assert _admitted(scheduler) == ([blocking, late] if is_running else [blocking])
    assert scheduler.admit(0, NOW + 4.9) == Admission([], [])
    assert scheduler.admit(0, NOW + 5) == Admission([], [(late, FinishReason.DEADLINE)])
    assert (scheduler.num_waiting, scheduler.num_running) == (0, 1)
    assert scheduler.admit(0, NOW + 6) == Admission([], [])


def test_a_request_that_has_expired_when_it_arrives_is_never_admitted() -> None:
    scheduler = _scheduler()
    [late] = _submitted(scheduler, _request(deadline=NOW - 1))
    assert scheduler.admit(0, NOW) == Admission([], [(late, FinishReason.DEADLINE)])


def test_wait_for_work_returns_when_a_request_arrives() -> None:
    scheduler = _scheduler()
    waiter = threading.Thread(target=scheduler.wait_for_work, args=(0, 300.0), daemon=True)
    waiter.start()
    _submitted(scheduler, _request())
    waiter.join(timeout=60.0)
    assert not waiter.is_alive()


def test_wait_for_work_returns_at_once_if_the_scheduler_is_closed() -> None:
    scheduler = _scheduler()
    scheduler.close()
    waiter = threading.Thread(target=scheduler.wait_for_work, args=(0, 300.0), daemon=True)
    waiter.start()
    waiter.join(timeout=60.0)
    assert not waiter.is_alive()


def _is_empty(queue: ArrivalQueue) -> bool:
    return queue.is_empty


def test_an_arrival_queue_admits_in_order_until_an_encoder_run_is_full() -> None:
    queue, requests = ArrivalQueue(max_tokens=10), [_request(source_len=length) for length in (5, 4, 1, 1, 20)]
    assert _is_empty(queue)
    queue.add(requests)
    assert not _is_empty(queue)
    assert queue.admit(0, NOW, may_admit=False) == Admission([], [])
    assert queue.admit(0, NOW).admitted == requests[:3]
    assert queue.admit(0, NOW).admitted == requests[3:]
    assert _is_empty(queue)


def test_a_request_dropped_from_an_arrival_queue_is_cancelled_once_whether_it_waits_or_runs() -> None:
    queue, (waiting, running, ended) = ArrivalQueue(max_tokens=10), (_request() for _ in range(3))
    queue.add([running, ended])
    assert queue.admit(0, NOW).admitted == [running, ended]
    queue.retire(0, [ended], NOW)
    queue.add([waiting])
    queue.drop([waiting.id, running.id, ended.id, -1])
    assert not _is_empty(queue)
    cancelled = [(request, FinishReason.CANCELLED) for request in (waiting, running)]
    assert queue.admit(0, NOW) == Admission([], cancelled)
    assert _is_empty(queue)
    assert queue.admit(0, NOW) == Admission([], [])


def test_few_source_tokens_are_encoded_ahead() -> None:
    scheduler = Scheduler(SchedulerLimits(1, 2, 100, 100, max_rows_ahead=20))
    long = [_request(source_len=30) for _ in range(6)]
    scheduler.submit(long)
    assert scheduler.admit(0, NOW).admitted == long[:3]
    assert scheduler.admit(0, NOW).admitted == long[3:4]  # then 60 tokens wait for rows, and 50 are enough
    assert scheduler.admit(0, NOW).admitted == []
    scheduler.retire(0, long[:1], NOW)
    assert scheduler.admit(0, NOW).admitted == long[4:5]


def test_the_expected_wait_is_that_of_the_source_tokens_before() -> None:
    scheduler = Scheduler(SchedulerLimits(1, 2, 1000, 100, max_queue_seconds=1.0))
    scheduler.submit([_request() for _ in range(5)])
    for second in range(2):  # nine tokens in a second, behind the first request
        scheduler.retire(0, scheduler.admit(0, NOW + second).admitted, NOW + second)
    scheduler.submit([_request(source_len=90) for _ in range(4)])
    assert len(scheduler.admit(0, NOW + 1).admitted) == 2
    scheduler.check_admission(NOW + 2)  # too long for less than 0.3 s
    with pytest.raises(QueueFull, match=r"the expected wait is 30\.00 s of at most 1 s; retry after 30 s"):
        scheduler.check_admission(NOW + 2.4)


def test_a_cancelled_request_wakes_only_its_own_replica() -> None:
    scheduler = Scheduler(SchedulerLimits(2, 8, 1000, 100))
    asked = _submitted(scheduler, _request())
    assert scheduler.admit(1, NOW).admitted == asked
    scheduler.cancel(asked)
    for replica, waits in ((0, True), (1, False)):
        begun = time.monotonic()
        scheduler.wait_for_work(replica, 0.05)
        assert (time.monotonic() - begun >= 0.05) == waits


def test_an_absent_replica_admits_no_request_and_the_others_get_its_share() -> None:
    scheduler = Scheduler(SchedulerLimits(2, 16, 1000, 100))
    asked = _submitted(scheduler, *(_request(beam_size=4) for _ in range(4)))
    scheduler.set_absent(0, True)
    assert scheduler.admit(0, NOW) == Admission([], [])
    assert scheduler.admit(1, NOW).admitted == asked
    scheduler.retire(1, asked, NOW + 1)
    scheduler.set_absent(0, False)
    again = _submitted(scheduler, *(_request(beam_size=4) for _ in range(4)))
    assert [scheduler.admit(replica, NOW + 2).admitted for replica in (0, 1)] == [again[:2], again[2:]]


def _has_news(scheduler: Scheduler) -> bool:
    return scheduler.has_news


def test_there_is_news_while_requests_wait_or_another_replica_must_drop_one() -> None:
    scheduler = Scheduler(SchedulerLimits(2, max_rows=8, max_encoder_tokens=1000, max_waiting=100))
    assert not _has_news(scheduler)
    first, second = request([5] * 3), request([5] * 3, deadline=NOW + 1)
    scheduler.submit([first, second])
    assert _has_news(scheduler)
    assert scheduler.admit(0, NOW).admitted == [first]
    assert _has_news(scheduler), "the other replica takes the second one"
    assert scheduler.admit(1, NOW).admitted == [second]
    assert not _has_news(scheduler)
    assert scheduler.admit(0, NOW + 2).dropped == []
    assert _has_news(scheduler), "the second request has expired"
    assert scheduler.admit(1, NOW + 2).dropped == [(second, FinishReason.DEADLINE)]
    assert not _has_news(scheduler)
