import numpy as np

from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.request import Request, SentenceParams, Timings
from server.workers.thread_lending import ThreadLending


class _Model:
    def __init__(self) -> None:
        self.has_requests = False
        self.is_lent = True

    def lend(self, is_lent: bool) -> None:
        self.is_lent = is_lent


def _set(lending: ThreadLending, model: _Model, has_requests: bool) -> None:
    model.has_requests = has_requests
    lending.activity_changed(model)


def test_only_a_model_that_is_asked_alone_has_the_threads_of_the_others() -> None:
    lending, first, second = ThreadLending(), _Model(), _Model()
    for model in (first, second):
        lending.add(model)
    _set(lending, first, True)
    assert (first.is_lent, second.is_lent) == (True, False)
    _set(lending, second, True)
    assert (first.is_lent, second.is_lent) == (False, False)
    _set(lending, first, False)
    assert (first.is_lent, second.is_lent) == (False, True)
    _set(lending, second, False)
    assert (first.is_lent, second.is_lent) == (True, True)


def test_a_model_that_is_added_borrows_from_no_busy_one_and_a_closed_one_gives_its_threads_back() -> None:
    lending, first, second = ThreadLending(), _Model(), _Model()
    lending.add(first)
    _set(lending, first, True)
    lending.add(second)
    assert (first.is_lent, second.is_lent) == (True, False)
    _set(lending, second, True)
    lending.remove(second)
    assert first.is_lent


def test_replicas_on_lent_threads_take_requests_only_while_the_threads_are_lent() -> None:
    scheduler = Scheduler(
        SchedulerLimits(num_replicas=2, max_rows=4, max_encoder_tokens=100, max_waiting=100, num_lent=1)
    )
    source, params = np.array([5, 0], np.int32), SentenceParams(max_new_tokens=4)
    scheduler.submit([Request(source, params, Timings(0.0)) for _ in range(6)])
    scheduler.set_lent(False)
    assert scheduler.admit(1, 0.0).admitted == []
    assert len(scheduler.admit(0, 0.0).admitted) == 4, "its share is that of the replicas that may take any"
    scheduler.set_lent(True)
    assert len(scheduler.admit(1, 0.0).admitted) == 2
