"""The pace of finished requests, controlled delay, and shares of clients, in numbers."""

import pytest

from server.engine.fair_shares import FairShares
from server.engine.overload import DelayControl, Pace


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


def test_sentences_of_a_call_are_queued_at_half_the_pace_of_their_work() -> None:
    shares = FairShares()
    call = shares.begin_call("a", 100.0)
    assert [shares.queue(call, 4, 0.5) for _ in range(3)] == [100.0, 101.0, 102.0]
    assert [shares.queue(shares.begin_call("a", 100.0), 1, 0.0) for _ in range(2)] == [100.0, 100.0]
    unknown = FairShares()
    call = unknown.begin_call("a", 100.0)
    assert [unknown.queue(call, 1, 0.0) for _ in range(2)] == [100.0, 100.05]


def test_calls_beside_other_clients_are_queued_at_the_pace_of_their_share() -> None:
    shares = FairShares()
    shares.queue(shares.begin_call("b", 100.0), 1, 1.0)
    assert (shares.num_clients("a"), shares.num_clients("b"), shares.num_clients("c")) == (2, 1, 2)
    times = []
    for _ in range(3):
        call = shares.begin_call("a", 100.0)
        times.append(shares.queue(call, 1, 1.0))
    assert times == [100.0, 102.0, 104.0]
    assert shares.num_waiting("a") == 3
    assert shares.start_time("a", 100.0) == 106.0
    assert shares.start_time("a", 200.0) == 200.0


def test_the_rest_of_a_long_call_waits_for_that_of_another_long_call() -> None:
    shares = FairShares()
    shares.queue(shares.begin_call("b", 100.0), 1, 1.0)
    call = shares.begin_call("a", 100.0)
    times = [shares.queue(call, 1, 1.0) for _ in range(11)]
    assert times[:8] == [100.0 + 2 * number for number in range(8)]
    assert times[8:] == [116.0, 118.0, 120.0]


def test_a_client_is_below_its_share_of_all_rows() -> None:
    shares = FairShares()
    first, second = shares.begin_call("a", 100.0), shares.begin_call("b", 100.0)
    shares.queue(first, 4, 1.0)
    shares.queue(second, 2, 1.0)
    assert [shares.is_below_share(client, 8) for client in ("a", "b", "c")] == [False, True, True]
    assert shares.is_below_share("a", 9)
    assert not shares.is_below_share("a", 5)
    assert shares.is_below_share("b", 5)  # six are requested
    shares.admit(first)
    assert (shares.num_waiting("a"), shares.num_waiting("b")) == (0, 1)
    shares.end(first, 4)
    assert shares.num_clients("a") == 2
    assert shares.is_below_share("a", 1)
