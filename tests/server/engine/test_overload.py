"""Pace and delay: in numbers, and in a server that completes a sentence every 100 ms, at loads around that."""

from collections import deque

import pytest

from server.engine.overload import DelayControl, Pace
from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.errors import QueueFull
from server.interface.request import Request
from tests.fakes.engine import request
from tests.fakes.sentence_params import sentence_params

SERVICE_SECONDS = 0.1
MAX_QUEUE_SECONDS = 0.5


def _arriving(now: float) -> Request:
    asked = request([5, 2], sentence_params())
    asked.timings.arrived = now
    return asked


class _OneRow:
    """Server of one row, on a clock that moves by 10 ms."""

    def __init__(self, service_seconds: float = SERVICE_SECONDS, max_queue_seconds: float = MAX_QUEUE_SECONDS) -> None:
        self.scheduler = Scheduler(SchedulerLimits(1, 1, 100, 10_000, max_queue_seconds=max_queue_seconds))
        self._service_ticks = round(service_seconds * 100)
        self.ticks = 0
        self.num_finished = 0
        self.num_rejected = 0
        self.waits: deque[float] = deque(maxlen=20)  # of those admitted last
        self._running: tuple[Request, int] | None = None

    @property
    def now(self) -> float:
        return self.ticks / 100

    def ask(self, num_sentences: int = 1) -> None:
        has_room = True
        try:
            self.scheduler.check_admission(self.now)
        except QueueFull:
            has_room = False
        try:
            self.scheduler.submit([_arriving(self.now) for _ in range(num_sentences)])
        except QueueFull:
            self.num_rejected += 1
            assert not has_room
        else:
            assert has_room

    def run(self, seconds: float, ticks_between_arrivals: int | None = None) -> None:
        for _ in range(round(seconds * 100)):
            self.ticks += 1
            if ticks_between_arrivals and self.ticks % ticks_between_arrivals == 0:
                self.ask()
            if self._running is not None and self.ticks >= self._running[1]:
                self.scheduler.retire(0, [self._running[0]], self.now)
                self.num_finished += 1
                self._running = None
            if self._running is None:
                for admitted in self.scheduler.admit(0, self.now).admitted:
                    self.waits.append(self.now - admitted.timings.arrived)
                    self._running = (admitted, self.ticks + self._service_ticks)


@pytest.fixture
def server() -> _OneRow:
    return _OneRow()


def test_at_twice_the_capacity_the_server_is_always_busy_and_accepted_calls_wait_no_longer_than_allowed(
    server: _OneRow,
) -> None:
    server.run(5, ticks_between_arrivals=5)
    finished, server.num_rejected = server.num_finished, 0
    server.run(20, ticks_between_arrivals=5)
    assert server.num_finished - finished >= 20 / SERVICE_SECONDS - 1
    assert max(server.waits) <= MAX_QUEUE_SECONDS + 2 * SERVICE_SECONDS
    assert server.num_rejected == pytest.approx(20 / 0.05 / 2, rel=0.2)


def test_the_queue_stays_short_if_overload_has_gaps() -> None:
    server = _OneRow(service_seconds=0.02, max_queue_seconds=0.05)
    longest: list[float] = []
    for _ in range(20):
        server.run(0.4, ticks_between_arrivals=1)
        longest.append(max(server.waits))
        server.run(0.1)  # enough for the queue to run empty
    assert longest[0] > 0.15, "the first one is a burst"
    assert max(longest[2:]) <= 0.05 + 2 * 0.02


def test_after_the_overload_a_burst_is_accepted_again(server: _OneRow) -> None:
    server.run(10, ticks_between_arrivals=5)
    rejected = server.num_rejected
    assert rejected > 0
    server.run(2)
    for _ in range(40):
        server.ask()
    assert server.num_rejected == rejected


def test_the_rejection_has_the_expected_wait(server: _OneRow) -> None:
    server.run(0.01)
    message = r"the queue is too slow: the expected wait is \d\.\d\d s of at most 0\.5 s; retry after \d s"
    with pytest.raises(QueueFull, match=message):
        _ask_until_rejected(server)


def _ask_until_rejected(server: _OneRow) -> None:
    while True:
        server.scheduler.submit([_arriving(server.now)])
        server.run(0.01)


def test_the_pace_is_that_of_the_tokens_behind_the_first_request() -> None:
    pace = Pace()
    assert pace.tokens_per_second() == 0
    pace.add(10.0, 5)
    assert pace.tokens_per_second() == 0
    pace.add(10.0, 3)
    assert pace.tokens_per_second() == 0  # no time has passed
    pace.add(12.0, 1)
    assert pace.tokens_per_second() == 2
    pace.clear()
    assert pace.tokens_per_second() == 0


def test_the_usual_pace_is_that_of_many_requests_before_an_idle_moment_too() -> None:
    pace = Pace()
    assert pace.usual == 0.0
    for number in range(31):
        pace.add(number, 20)
    assert pace.usual == 20.0
    pace.clear()
    assert pace.usual == 0.0  # few are no measure
    for number in range(32):
        pace.add(number, 20)
    pace.clear()
    for number in range(31):
        pace.add(number, 5)
    assert (pace.usual, pace.tokens_per_second()) == (20.0, 5.0)
    pace.clear()
    assert pace.usual == 20.0
    for number in range(32):
        pace.add(number, 5)
    assert pace.usual == 5.0


def test_the_pace_is_that_of_the_last_256_requests() -> None:
    pace = Pace()
    pace.add(0.0, 1000)
    for number in range(256):
        pace.add(100.0 + number, 2)
    assert pace.tokens_per_second() == pytest.approx(2.0)


def test_a_queue_is_an_overload_once_it_was_too_long_for_a_while() -> None:
    delay = DelayControl(1.0)
    assert not delay.rejects(100.0, 1.0)
    assert not delay.rejects(100.0, 1.1)
    assert not delay.rejects(100.2, 1.1)
    assert not delay.rejects(100.25, 0.6)  # not below half: it is still too long
    assert delay.rejects(100.31, 1.1)
    assert delay.rejects(102.0, 1.1)


def test_half_of_the_delay_ends_a_congestion_and_not_the_memory_of_rejections() -> None:
    delay = DelayControl(1.0)
    assert not delay.rejects(100.0, 1.1)
    assert not delay.rejects(100.2, 0.5)
    assert not delay.rejects(100.4, 1.1)  # begins again
    assert delay.rejects(100.75, 1.1)
    assert not delay.rejects(100.8, 0.5)
    assert delay.rejects(101.0, 1.1)  # shortly after a rejection
    delay.clear()
    assert delay.rejects(102.9, 1.1)
    delay.clear()
    assert not delay.rejects(105.0, 1.1)
