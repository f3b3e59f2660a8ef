import pytest

from benchmarks.queueing import (
    ServiceTimes,
    by_key,
    highest_rate,
    least_outstanding,
    measured,
    quantile,
    round_robin,
    simulate,
)
from server.operations.defaults import DEFAULT_MODEL

# A step takes as long for one row as for many: requests do not delay each other until the rows are full.
_FREE = ServiceTimes(0.001, 0.0, 0.0)
_TIMES = ServiceTimes(0.001, 0.0005, 0.001)


def test_without_waiting_a_request_takes_its_steps() -> None:
    latencies = simulate(_FREE, 1, 1.0, round_robin(), 500)
    assert latencies[0] >= 0.003 - 1e-9
    assert latencies[-1] <= 0.120 + 1e-9
    assert sum(latencies) / len(latencies) == pytest.approx(0.015, rel=0.1)


def test_more_rows_than_a_replica_has_wait() -> None:
    rate = 1.5 * _FREE.max_running / 0.015
    assert quantile(simulate(_FREE, 1, rate, round_robin(), 4000), 0.5) > 0.2
    assert quantile(simulate(_FREE, 2, rate, round_robin(), 4000), 0.99) < 0.12


def test_requests_that_share_steps_are_slower_and_a_full_replica_keeps_its_capacity() -> None:
    capacity = _TIMES.capacity(15.0)
    calm = quantile(simulate(_TIMES, 1, 0.2 * capacity, round_robin(), 4000), 0.5)
    busy = quantile(simulate(_TIMES, 1, 0.8 * capacity, round_robin(), 4000), 0.5)
    assert busy > 1.5 * calm
    assert quantile(simulate(_TIMES, 1, 1.3 * capacity, round_robin(), 4000), 0.99) > 5 * busy


def test_the_least_outstanding_replica_is_the_best_choice_and_a_key_the_worst() -> None:
    rate = 8 * 0.7 * _TIMES.capacity(15.0)
    high = [
        quantile(simulate(_TIMES, 8, rate, choice(), 6000), 0.99) for choice in (least_outstanding, round_robin, by_key)
    ]
    assert high[0] <= high[1] < high[2]


def test_the_highest_rate_meets_the_objective_and_grows_with_the_replicas() -> None:
    one, _ = highest_rate(_TIMES, 1, "least outstanding", 0.5, 3000)
    four, high = highest_rate(_TIMES, 4, "least outstanding", 0.5, 3000)
    assert high <= 0.5
    assert four >= 3.9 * one > 0


def test_the_times_of_an_engine_are_measured() -> None:
    times = measured(DEFAULT_MODEL, beam_size=4, repeat=1)
    assert times.max_running == 8
    assert 0 < times.step(1) < times.step(8) < 1
    assert 0 <= times.encode < 1
