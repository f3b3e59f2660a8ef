"""Long calls in the queue of a pool: their requests are fed in turn, and all are answered."""

import asyncio

import pytest

from server.engine.fair_shares import SHORT_CALL
from server.interface.client_identity import NO_LIMITS, ClientLimits, client_of_call, limits_of_client
from server.interface.errors import Draining, QueueFull
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions
from tests.fakes.cached_echo import ask, queued, run, tokens_of
from tests.fakes.engine import FakeRunner, fake_bundle, random_table

MAX_WAITING = 160
MAX_OF_A_CALL = 40


def _pool() -> EnginePool:
    runner = FakeRunner(random_table(seed=3, vocab=12, end_bias=-1.0))
    return EnginePool(fake_bundle(12), [runner], PoolOptions(max_rows=16, max_waiting=MAX_WAITING))


def test_a_call_of_more_sentences_than_the_queue_is_fed_in_turn() -> None:
    pool = _pool()
    most = 0

    async def scenario() -> None:
        nonlocal most
        call = asyncio.create_task(pool.generate([ask(2 + number % 9) for number in range(300)]))
        await queued(pool, MAX_OF_A_CALL)
        others = [asyncio.create_task(pool.generate([ask(5)])) for _ in range(MAX_WAITING - SHORT_CALL)]
        await queued(pool, MAX_WAITING - SHORT_CALL + MAX_OF_A_CALL)
        with pytest.raises(QueueFull):
            await pool.generate([ask(5)])
        pool.start()
        while not call.done():
            most = max(most, pool.status().waiting + pool.status().running)
            await asyncio.sleep(0)
        answers = tokens_of(await call)
        assert len(answers) == 300
        assert answers[:9] == answers[9:18] == answers[279:288]
        assert len({tuple(each) for each in tokens_of([done for [done] in await asyncio.gather(*others)])}) == 1

    try:
        run(scenario)
    finally:
        pool.close()
    assert most <= MAX_WAITING - SHORT_CALL + MAX_OF_A_CALL


def test_a_cancelled_long_call_is_fed_no_more() -> None:
    pool = _pool()

    async def scenario() -> None:
        calls = [asyncio.create_task(pool.generate([ask(5) for _ in range(300)]))]
        await queued(pool, MAX_OF_A_CALL)
        calls[0].cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        pool.start()
        await pool.generate([ask(6)])
        assert pool.status().waiting == 0
        assert not pool._calls

    try:
        run(scenario)
    finally:
        pool.close()


def test_a_long_call_ends_when_the_pool_closes() -> None:
    pool = _pool()

    async def scenario() -> None:
        calls = [asyncio.create_task(pool.generate([ask(5) for _ in range(300)]))]
        await queued(pool, MAX_OF_A_CALL)
        assert pool.status().unfinished == 300, "with those that are not in the queue yet"
        pool.close()
        [error] = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(error, Draining)
        assert pool.status().waiting <= MAX_OF_A_CALL
        assert pool.status().unfinished == 0

    run(scenario)


def test_a_client_with_a_limit_has_no_more_sentences_waiting() -> None:
    pool = _pool()

    async def scenario() -> None:
        limits_of_client.set(ClientLimits(waiting_sentences=7))
        client_of_call.set("limited")
        calls = [asyncio.create_task(pool.generate([ask(2 + number % 9) for number in range(30)]))]
        await queued(pool, 7)
        with pytest.raises(QueueFull, match="this client has 7 of 7 sentences waiting"):
            pool.check_admission()
        with pytest.raises(QueueFull, match="this client has 7 of 7 sentences waiting"):
            await pool.generate([ask(5)])
        client_of_call.set("other")
        limits_of_client.set(NO_LIMITS)
        calls.append(asyncio.create_task(pool.generate([ask(5) for _ in range(9)])))
        await queued(pool, 16)
        pool.start()
        assert [len(each) for each in await asyncio.gather(*calls)] == [30, 9]

    try:
        run(scenario)
    finally:
        pool.close()
