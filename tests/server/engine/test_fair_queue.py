"""Order of waiting sentences: in numbers, and in a server of one row that decodes ten sentences a second."""

import math
from collections import Counter

import pytest

from server.engine.fair_queue import FairShares, QueuedCall, RestClock, WaitingQueue, num_tokens
from server.engine.scheduler import Scheduler, SchedulerLimits
from server.interface.errors import QueueFull
from server.interface.request import Request, SentenceParams
from tests.fakes.engine import request

STEP_SECONDS = 0.1
NOW = 100.0


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
