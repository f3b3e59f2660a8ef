"""Shares of clients in the queue of one replica that decodes one row at a time, ten a second."""

import math
from collections import Counter

import pytest

from server.engine.fair_shares import FairShares, QueuedCall
from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.errors import QueueFull
from server.interface.request import Request, SentenceParams
from tests.fakes.engine import request

STEP_SECONDS = 0.1


class _Server:
    """One replica with one row."""

    def __init__(self, max_waiting: int = 100, max_queue_seconds: float = math.inf) -> None:
        self.scheduler = Scheduler(SchedulerLimits(1, 1, 100, max_waiting, max_queue_seconds=max_queue_seconds))
        self.now = 100.0
        self.client_of: dict[Request, str] = {}
        self.decoded = Counter[str]()

    def send(self, client: str, num_sentences: int = 1, round_of: float | None = None) -> None:
        requests = [request([5], SentenceParams()) for _ in range(num_sentences)]
        for each in requests:
            each.timings.arrived = self.now
            each.round_of = round_of
            each.accepted_earlier = round_of is not None
        self.scheduler.submit(requests, client)
        self.client_of |= dict.fromkeys(requests, client if round_of is None else "further round")

    def step(self) -> str:
        """Decode one sentence and return its client."""
        [admitted] = self.scheduler.admit(0, self.now).admitted
        self.now += STEP_SECONDS
        self.scheduler.retire(0, [admitted], self.now)
        client = self.client_of.pop(admitted)
        self.decoded[client] += 1
        return client


def test_a_client_with_many_calls_gets_no_more_than_its_share() -> None:
    server = _Server(max_waiting=10_000)
    modest = [f"modest {number}" for number in range(9)]
    for client in modest:
        server.send(client)
    for _ in range(2000):
        while sum(client == "greedy" for client in server.client_of.values()) < 50:
            server.send("greedy")
        client = server.step()
        if client != "greedy":
            server.send(client)  # one call at a time
    assert 0.05 <= server.decoded["greedy"] / 2000 <= 0.12
    shares = [server.decoded[client] / 2000 for client in modest]
    assert min(shares) >= 0.08


@pytest.mark.parametrize("others", [0, 1])
def test_a_further_round_waits_for_no_rest_of_its_call(others: int) -> None:
    server = _Server(max_waiting=10_000)
    begun = server.now
    server.send("long", 200)
    for number in range(others):
        server.send(f"other {number}", 200)
    for _ in range(20):
        server.step()
    server.send("long", 6, round_of=begun)
    clients = [server.step() for _ in range(30)]
    assert clients.count("further round") == 6
    assert clients.count("other 0") >= 10 * others


@pytest.mark.parametrize("other", ["same", "other"])
def test_a_long_call_is_not_stopped_by_a_later_one(other: str) -> None:
    server = _Server(max_waiting=10_000)
    server.send("before", 300)  # its pace is still known when it has ended
    while server.client_of:
        server.step()
    for _ in range(2):
        server.send("same", 400)
        first = set(server.client_of)
        for _ in range(200):
            server.step()
        server.send(other, 400)
        num_left = len(first & server.client_of.keys())
        for _ in range(100):
            server.step()
        assert 30 <= num_left - len(first & server.client_of.keys()) <= 70
        while server.client_of:
            server.step()


def test_long_calls_of_one_client_together_get_its_share() -> None:
    server = _Server(max_waiting=10_000)
    server.send("modest", 30)
    for _ in range(20):
        server.step()
    for _ in range(3):
        server.send("modest", 300)
        for _ in range(5):
            server.send("greedy", 300)
    order = [server.step() for _ in range(800)]
    assert 0.4 <= order.count("greedy") / 800 <= 0.6


def test_a_short_call_does_not_wait_for_a_long_one_of_the_same_client_beside_others() -> None:
    server = _Server(max_waiting=10_000)
    server.send("other", 30)
    for _ in range(20):
        server.step()
    server.send("other", 500)
    server.send("same", 500)
    for _ in range(20):
        server.step()
    before = set(server.client_of)
    server.send("same", 3)
    for _ in range(25):
        server.step()
    assert set(server.client_of) <= before


def test_a_client_alone_is_queued_as_its_calls_arrive() -> None:
    server = _Server()
    for _ in range(20):
        server.send("only")
    assert [server.step() for _ in range(20)] == ["only"] * 20


def test_only_the_client_above_its_share_is_rejected_when_the_queue_is_slow() -> None:
    server = _Server(max_waiting=10_000, max_queue_seconds=0.5)
    for _ in range(20):
        server.send("greedy")
    for _ in range(10):
        server.step()
    server.send("modest")
    for _ in range(5):
        with pytest.raises(QueueFull, match="the queue is too slow"):
            server.send("greedy")
    server.send("modest")
    assert "modest" in [server.step() for _ in range(12)]


def test_a_queue_filled_by_one_client_takes_the_share_of_another() -> None:
    server = _Server(max_waiting=10)
    for _ in range(10):
        server.send("greedy")
    with pytest.raises(QueueFull, match="10 of 10 sentences waiting"):
        server.send("greedy")
    for _ in range(5):
        server.send("modest")
    with pytest.raises(QueueFull):
        server.send("modest")
    with pytest.raises(QueueFull):
        server.send("greedy")
    for _ in range(15):
        server.step()
    assert not server.scheduler._shares._num_present
    assert not server.scheduler._shares._next_call
    assert not server.scheduler._shares._next_rest
    assert not server.scheduler._shares._num_waiting


def test_clients_of_dropped_requests_are_not_kept() -> None:
    server = _Server()
    server.send("gone", 3)
    server.scheduler.cancel(list(server.client_of))
    server.scheduler.admit(0, server.now)
    assert not server.scheduler._shares._num_present
    assert not server.scheduler._shares._num_waiting


def test_long_calls_of_a_client_alone_take_turns() -> None:
    shares = FairShares()
    times = [
        [shares.queue(call, 1, seconds=0.1) for _ in range(20)] for call in (_call(shares, 0.0), _call(shares, 0.1))
    ]
    assert times[1][-1] - times[0][-1] == pytest.approx(0.1)


def _call(shares: FairShares, arrived: float) -> QueuedCall:
    return shares.begin_call("alone", arrived)


def _busy_server() -> _Server:
    """A server that has a pace, and decodes for one client."""
    server = _Server(max_waiting=10_000)
    server.send("same", 30)
    for _ in range(25):
        server.step()
    return server


@pytest.mark.parametrize("num_steps_between", [0, 20, 60])
def test_a_short_call_does_not_wait_for_many_long_ones_of_the_same_client(num_steps_between: int) -> None:
    server = _busy_server()
    for _ in range(4):
        server.send("same", 300)
        for _ in range(num_steps_between):
            server.step()
    for _ in range(60):
        server.step()
    for _ in range(10):
        before = set(server.client_of)
        server.send("same", 2)
        short = set(server.client_of) - before
        for _ in range(4):  # the other half is for the long calls
            server.step()
        assert short.isdisjoint(server.client_of)


def test_short_calls_leave_turns_to_a_long_one() -> None:
    server = _busy_server()
    server.send("same", 300)
    long = set(server.client_of)
    for _ in range(200):
        server.send("same")  # one arrives in the time of one: together they are more than the engine can decode
        server.step()
    assert 60 <= len(long - set(server.client_of)) <= 100


@pytest.mark.parametrize("num_sentences", [1, 8])
def test_rests_of_long_calls_leave_room_in_the_queue_for_short_calls(num_sentences: int) -> None:
    server = _Server(max_waiting=20)
    for _ in range(2):
        server.send("same", 15)
    server.send("same", num_sentences)
    with pytest.raises(QueueFull, match="of 20 sentences waiting"):
        server.send("same", 9)
    while server.scheduler.num_waiting < 80:
        server.send("same", round_of=server.now)
    with pytest.raises(QueueFull, match="80 of 20 sentences waiting"):
        server.send("same", num_sentences)


def test_rests_of_a_client_begin_after_its_share_of_calls_on_their_own_clock() -> None:
    shares = FairShares()
    shares.rest_clock.take(150.0, now=100.0)
    lead = shares.rest_clock.lead
    assert lead == 49.0
    for client in ("first", "second"):
        shares.queue(shares.begin_call(client, 100.0), 1, 1.0)
    call = shares.begin_call("third", 100.0)
    times = [shares.queue(call, 1, 1.0) for _ in range(10)]
    # Of three clients: sentences at the beginning count three times, and others wait for three of them.
    assert times == [100.0 + 2 * place for place in range(8)] + [100.0 + 8 * 3 + lead, 100.0 + 9 * 3 + lead]
