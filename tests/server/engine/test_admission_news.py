from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.request import FinishReason
from tests.fakes.engine import request

NOW = 100.0


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
