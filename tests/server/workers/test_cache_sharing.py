import asyncio

import pytest

from server.interface.errors import EngineFailed, QueueFull
from server.interface.request import FinishReason
from server.workers.cache import CachedEngineClient
from tests.fakes.cached_echo import (
    PATIENCE_SECONDS,
    SOON_SECONDS,
    Cached,
    Watcher,
    ask,
    joined,
    queued,
    random_replicas,
    run,
    tokens_of,
)
from tests.fakes.echo import EchoGenerator
from tests.fakes.engine import END


def test_identical_sentences_in_flight_are_decoded_once(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        gate = cached.hold()
        calls = [cached.begin(ask(5, 6)), cached.begin(ask(5, 6)), cached.begin(ask(9), ask(5, 6))]
        await joined(cached, *calls)
        gate.set()
        assert [tokens_of(await call) for call in calls] == [[[5, 6]], [[5, 6]], [[9], [5, 6]]]

    run(scenario)
    assert cached.decoded == [[[5, 6, END]], [[9, END]]]
    assert cached.watcher.outcomes == {"decoded": 2, "coalesced": 2}


def test_a_late_call_has_timings_from_its_arrival_on(echo: EchoGenerator) -> None:
    cached = Cached(echo)
    early, late = ask(5), ask(5)
    # The echo writes its first token 4 ms after the arrival, and its last after 10 ms.
    late.timings.arrived = early.timings.arrived + 0.006

    async def scenario() -> None:
        gate = cached.hold()
        calls = cached.begin(early), cached.begin(late)
        await joined(cached, *calls)
        gate.set()
        await asyncio.gather(*calls)

    run(scenario)
    assert early.timings.first_token - early.timings.arrived == pytest.approx(0.004)
    assert late.timings.admitted == late.timings.encoded == late.timings.first_token == late.timings.arrived
    assert late.timings.assigned == late.timings.arrived
    assert late.timings.finished == early.timings.finished


def test_a_call_does_not_wait_for_a_larger_one(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        gate = cached.hold()
        document = cached.begin(ask(5), ask(6), ask(7))
        await cached.echo.entered.wait()
        echo.gate = None
        assert tokens_of(await cached.generator.generate([ask(6)])) == [[6]]
        assert not document.done()
        gate.set()
        assert tokens_of(await document) == [[5], [6], [7]]

    run(scenario)
    assert cached.watcher.outcomes == {"decoded": 4}
    assert cached.watcher.num_kept == 3


def test_a_follower_expires_at_its_own_deadline_and_leaves_the_leader_alone(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        gate = cached.hold()
        leader = cached.begin(ask(5, expires_in=PATIENCE_SECONDS))
        follower = cached.begin(hurried := ask(5, expires_in=SOON_SECONDS))
        [expired] = await follower
        assert (expired.request, expired.finish_reason, expired.hypotheses) == (hurried, FinishReason.DEADLINE, [])
        assert hurried.deadline is not None
        assert hurried.deadline <= hurried.timings.finished
        assert not leader.done()
        gate.set()
        assert tokens_of(await leader) == [[5]]

    run(scenario)
    assert len(echo.batches) == 1
    assert cached.watcher.outcomes == {"decoded": 1}


def test_a_leader_that_expires_leaves_its_followers_the_answer(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        gate = cached.hold()
        leader = cached.begin(ask(5, expires_in=SOON_SECONDS))
        follower = cached.begin(ask(5, expires_in=PATIENCE_SECONDS))
        [expired] = await leader
        assert expired.finish_reason is FinishReason.DEADLINE
        gate.set()
        assert tokens_of(await follower) == [[5]]

    run(scenario)
    assert len(echo.batches) == 1
    assert cached.watcher.outcomes == {"decoded": 1, "coalesced": 1}


def test_a_request_that_every_call_has_given_up_leaves_the_engine(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        cached.hold()
        calls = [cached.begin(ask(5, expires_in=SOON_SECONDS)) for _ in range(3)]
        done = await asyncio.gather(*calls)
        assert {completion.finish_reason for [completion] in done} == {FinishReason.DEADLINE}
        await asyncio.sleep(0)
        assert echo.num_cancelled == 1
        echo.gate = None
        assert tokens_of(await cached.generator.generate([ask(5)])) == [[5]]

    run(scenario)
    assert cached.watcher.outcomes == {"decoded": 1}


def test_a_leader_that_is_cancelled_leaves_its_followers_the_answer(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        gate = cached.hold()
        leader, follower = cached.begin(ask(5)), cached.begin(ask(5))
        await joined(cached, leader, follower)
        leader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leader
        gate.set()
        assert tokens_of(await follower) == [[5]]

    run(scenario)
    assert echo.num_cancelled == 0
    assert len(echo.batches) == 1


def test_when_all_calls_are_cancelled_so_is_the_request_and_the_next_call_starts_another(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        cached.hold()
        calls = [cached.begin(ask(5)) for _ in range(3)]
        await joined(cached, *calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        echo.gate = None
        assert tokens_of(await cached.generator.generate([ask(5)])) == [[5]]
        assert echo.num_cancelled == 1

    run(scenario)
    assert len(echo.batches) == 2


def test_an_error_reaches_every_waiting_call_and_is_not_cached(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        gate = cached.hold()
        calls = [cached.begin(ask(5)), cached.begin(ask(5)), cached.begin(ask(6))]
        await joined(cached, *calls)
        echo.error = EngineFailed("the step failed")
        gate.set()
        for call in calls:
            with pytest.raises(EngineFailed, match="the step failed"):
                await call
        echo.error = None
        assert tokens_of(await cached.generator.generate([ask(5), ask(6)])) == [[5], [6]]

    run(scenario)
    assert cached.watcher.outcomes == {"decoded": 2}


def test_a_call_that_fails_by_a_shared_sentence_cancels_its_own_sentences(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        gate = cached.hold()
        leader = cached.begin(ask(5))
        await cached.echo.entered.wait()
        echo.gate = asyncio.Event()
        joins = cached.begin(ask(5), ask(6))
        await asyncio.sleep(0)
        echo.error = EngineFailed("the step failed")
        gate.set()
        for call in (leader, joins):
            with pytest.raises(EngineFailed):
                await call
        await asyncio.sleep(0)

    run(scenario)
    assert echo.num_cancelled == 1
    assert cached.generator._in_flight == {}


def test_a_full_queue_rejects_a_whole_call_and_calls_that_joined_keep_waiting() -> None:
    replicas = random_replicas(max_waiting=2)
    generator = CachedEngineClient(replicas, 100, Watcher())

    async def scenario() -> None:
        first = asyncio.create_task(generator.generate([ask(4), ask(5)]))
        await queued(replicas, 2)
        joins = asyncio.create_task(generator.generate([ask(5), ask(4)]))
        for rejected in ([ask(6)], [ask(5), ask(6)]):
            with pytest.raises(QueueFull):
                await generator.generate(rejected)
        assert replicas.status().waiting == 2
        assert not joins.done()
        replicas.start()
        assert tokens_of(await joins) == tokens_of(await first)[::-1]
        assert len(await generator.generate([ask(6)])) == 1

    try:
        run(scenario)
    finally:
        generator.close()
