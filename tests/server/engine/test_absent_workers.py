"""Absent replicas, and requests that another replica must drop."""

import time

from server.engine.scheduler import Admission, Scheduler, SchedulerLimits
from server.interface.request import Request
from tests.fakes.engine import request
from tests.fakes.sentence_params import sentence_params

NOW = 100.0


def _requests(scheduler: Scheduler, beam_size: int, count: int) -> list[Request]:
    asked = [request([5, 5, 5], sentence_params(beam_size)) for _ in range(count)]
    scheduler.submit(asked)
    return asked


def test_a_cancelled_request_wakes_only_its_own_replica() -> None:
    scheduler = Scheduler(SchedulerLimits(2, 8, 1000, 100))
    asked = _requests(scheduler, 1, 1)
    assert scheduler.admit(1, NOW).admitted == asked
    scheduler.cancel(asked)
    for replica, waits in ((0, True), (1, False)):
        begun = time.monotonic()
        scheduler.wait_for_work(replica, 0.05)
        assert (time.monotonic() - begun >= 0.05) == waits


def test_an_absent_replica_admits_no_request_and_the_others_get_its_share() -> None:
    scheduler = Scheduler(SchedulerLimits(2, 16, 1000, 100))
    asked = _requests(scheduler, 4, 4)
    scheduler.set_absent(0, True)
    assert scheduler.admit(0, NOW) == Admission([], [])
    assert scheduler.admit(1, NOW).admitted == asked
    scheduler.retire(1, asked, NOW + 1)
    scheduler.set_absent(0, False)
    again = _requests(scheduler, 4, 4)
    assert [scheduler.admit(replica, NOW + 2).admitted for replica in (0, 1)] == [again[:2], again[2:]]
