import time

import pytest

from loadtest.results.clock import (
    ClockUnknown,
    RoundTrip,
    RunClock,
    WorkerClock,
    check_clocks,
    known_within,
    worker_clock,
)


def test_a_clock_with_another_zero_is_estimated_from_its_quickest_answer() -> None:
    # It is 1000 s ahead of the run's. The way there takes 1, 9 and 2 ms, the way back 1, 1 and 8.
    trips = [RoundTrip(5.0, 1005.001, 5.002), RoundTrip(6.0, 1006.009, 6.010), RoundTrip(7.0, 1007.002, 7.010)]
    found = worker_clock(trips)
    assert found.zero == pytest.approx(1000.0)
    assert found.uncertainty == pytest.approx(0.001)
    lopsided = worker_clock(trips[1:])
    assert abs(lopsided.zero - 1000.0) <= lopsided.uncertainty == pytest.approx(0.005)


def test_drift_during_a_stage_adds_to_the_uncertainty_of_a_clock() -> None:
    before = WorkerClock(zero=1000.0, uncertainty=0.002)
    assert known_within(before, WorkerClock(1000.0005, 0.001)) == pytest.approx(0.002)
    assert known_within(before, WorkerClock(999.99, 0.001)) == pytest.approx(0.011)


def test_a_clock_with_too_much_uncertainty_is_rejected_with_both_numbers() -> None:
    check_clocks([WorkerClock(0.0, 0.0), WorkerClock(50.0, 0.0099)])
    with pytest.raises(
        ClockUnknown, match=r"must be at most 10 ms\. Given: 12\.0 \(quickest of 16 round trips: 24\.0 ms\)"
    ):
        check_clocks([WorkerClock(0.0, 0.0), WorkerClock(50.0, 0.012)])


def test_the_clock_of_a_run_counts_from_its_zero() -> None:
    before = time.perf_counter()
    assert before - 7.0 <= RunClock(zero=7.0)() <= time.perf_counter() - 7.0
