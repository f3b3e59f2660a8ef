import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from server.interface.errors import Draining, EngineFailed, InvalidRequest, QueueFull
from server.interface.request import FinishReason, Request, SentenceParams
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions
from tests.fakes.engine import END, FakeRunner, copying_table, fake_bundle, request
from tests.fakes.held_worker import (
    PATIENCE_SECONDS,
    VOCAB,
    HeldRunner,
    begin,
    reached,
    sentence,
    tokens,
    until,
    with_replicas,
)
from tests.fakes.sentence_params import sentence_params


def test_completions_come_in_the_order_of_the_requests() -> None:
    async def scenario(replicas: EnginePool) -> None:
        completions = await replicas.generate([sentence(9), sentence(2), sentence(5, beam_size=3)])
        assert tokens(completions) == [[3] * 8, [3], [3] * 4]
        assert [done.request.params.beam_size for done in completions] == [1, 1, 3]

    with_replicas([FakeRunner(copying_table(VOCAB))], scenario)


def test_no_requests_have_no_completions() -> None:
    async def scenario(replicas: EnginePool) -> None:
        assert await replicas.generate([]) == []

    with_replicas([FakeRunner(copying_table(VOCAB))], scenario)


def test_callers_on_one_loop_share_the_engine() -> None:
    runner = HeldRunner()

    async def scenario(replicas: EnginePool) -> None:
        first = begin(replicas, sentence(8))
        await reached(runner.entered)
        others = [begin(replicas, sentence(length)) for length in (3, 4)]
        await until(lambda: replicas.status().waiting == 2)
        runner.go_on.set()
        assert [tokens(await task) for task in (first, *others)] == [[[3] * 7], [[3] * 2], [[3] * 3]]

    with_replicas([runner], scenario)
    # The others join at the second step, and the last of the eight steps has the first request only.
    assert runner.decoded == [1, 3, 3, 3, 2, 1, 1, 1]


def test_two_replicas_share_the_work() -> None:
    runners = [HeldRunner(), HeldRunner()]

    async def scenario(replicas: EnginePool) -> None:
        task = begin(replicas, *(sentence(4) for _ in range(6)))
        for runner in runners:
            await reached(runner.entered)
        assert replicas.status().rows_in_use == 6
        for runner in runners:
            runner.go_on.set()
        assert tokens(await task) == [[3] * 3] * 6

    with_replicas(runners, scenario)
    assert [runner.decoded for runner in runners] == [[3] * 4, [3] * 4]


def test_cancelling_the_awaiting_task_frees_its_rows_and_leaves_the_others() -> None:
    runner = HeldRunner()

    async def scenario(replicas: EnginePool) -> None:
        stays = begin(replicas, sentence(6))
        goes = begin(replicas, sentence(60, beam_size=4), sentence(60))
        await reached(runner.entered)
        await until(lambda: replicas.status().waiting + replicas.status().running == 3)
        goes.cancel()
        with pytest.raises(asyncio.CancelledError):
            await goes
        runner.go_on.set()
        assert tokens(await stays) == [[3] * 5]
        await until(lambda: replicas.status().running == 0)
        status = replicas.status()
        assert (status.waiting, status.running, status.rows_in_use) == (0, 0, 0)

    with_replicas([runner], scenario)
    assert runner.cache.num_live == 0
    assert len(runner.decoded) < 10


def test_cancelling_requests_that_wait_takes_them_out_of_the_queue() -> None:
    runner = HeldRunner()

    async def scenario(replicas: EnginePool) -> None:
        running = begin(replicas, *(sentence(3) for _ in range(16)))
        await reached(runner.entered)
        waiting = begin(replicas, *(sentence(40) for _ in range(5)))
        await until(lambda: replicas.status().waiting == 5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        runner.go_on.set()
        await running
        await until(lambda: replicas.status().waiting == replicas.status().running == 0)

    with_replicas([runner], scenario)
    assert runner.decoded == [16] * 3


def test_a_full_queue_rejects_a_call_and_completes_the_waiting_ones() -> None:
    runner = HeldRunner()

    async def scenario(replicas: EnginePool) -> None:
        running = begin(replicas, *(sentence(2) for _ in range(16)))
        await reached(runner.entered)
        waiting = begin(replicas, sentence(3), sentence(3))
        await until(lambda: replicas.status().waiting == 2)
        with pytest.raises(QueueFull):
            await replicas.generate([sentence(4), sentence(4)])
        assert replicas.status().waiting == 2
        runner.go_on.set()
        assert tokens(await running + await waiting) == [[3]] * 16 + [[3, 3]] * 2
        assert tokens(await replicas.generate([sentence(4)])) == [[3, 3, 3]]

    with_replicas([runner], scenario, max_waiting=2)


def test_an_expired_request_has_no_hypotheses() -> None:
    async def scenario(replicas: EnginePool) -> None:
        expired = sentence(5, deadline=time.monotonic() - 1.0)
        late, in_time = await replicas.generate([expired, sentence(3)])
        assert (late.request, late.finish_reason, late.hypotheses) == (expired, FinishReason.DEADLINE, [])
        assert tokens([in_time]) == [[3, 3]]

    with_replicas([FakeRunner(copying_table(VOCAB))], scenario)


def test_an_error_of_the_engine_reaches_its_caller_and_the_next_request_works() -> None:
    runner = FakeRunner(copying_table(VOCAB))

    async def scenario(replicas: EnginePool) -> None:
        runner.decode_error = RuntimeError("the device is gone")
        with pytest.raises(EngineFailed, match="RuntimeError"):
            await replicas.generate([sentence(5), sentence(5)])
        assert tokens(await replicas.generate([sentence(4)])) == [[3, 3, 3]]
        assert replicas.status().rows_in_use == 0

    with_replicas([runner], scenario)


def test_draining_waits_for_running_requests_and_rejects_new_ones() -> None:
    runner = HeldRunner()

    async def scenario(replicas: EnginePool) -> None:
        running = begin(replicas, sentence(6))
        await reached(runner.entered)
        draining = asyncio.create_task(replicas.drain(PATIENCE_SECONDS))
        await until(lambda: replicas.status().draining)
        with pytest.raises(Draining):
            await replicas.generate([sentence(2)])
        assert not draining.done()
        runner.go_on.set()
        assert tokens(await running) == [[3] * 5]
        assert await draining is True

    with_replicas([runner], scenario)


def test_draining_stops_after_its_timeout_and_running_requests_fail_when_the_engines_close() -> None:
    runner = HeldRunner()

    async def scenario(replicas: EnginePool) -> None:
        running = begin(replicas, sentence(60))
        await reached(runner.entered)
        assert await replicas.drain(0.0) is False
        closing = asyncio.create_task(asyncio.to_thread(replicas.close))
        await until(lambda: replicas._scheduler._is_closed)
        runner.go_on.set()
        await closing
        with pytest.raises(Draining):
            await running

    with_replicas([runner], scenario)


@pytest.mark.parametrize(
    ("source", "params", "message"),
    [
        ([VOCAB, END], sentence_params(), f"tokens of `source` must be from 0 to {VOCAB - 1} .* Given: {VOCAB}"),
        ([-1, END], sentence_params(), "tokens of `source` .* Given: -1"),
        ([], sentence_params(), "`source` must have 1 to 64 tokens with this model. Given: 0"),
        ([3] * 65, sentence_params(), "`source` must have 1 to 64 tokens with this model. Given: 65"),
        ([3, END], sentence_params(target_prefix=(3, 2**40)), f"tokens of `target_prefix` .* Given: {2**40}"),
        (
            [3, END],
            sentence_params(target_prefix=(3,) * 64),
            "`target_prefix` must have 0 to 63 tokens with this model. Given: 64",
        ),
        ([3, END], sentence_params(forced_target=(VOCAB, END)), f"tokens of `forced_target` .* Given: {VOCAB}"),
    ],
)
def test_tokens_outside_the_vocabulary_are_rejected(source: list[int], params: SentenceParams, message: str) -> None:
    async def scenario(replicas: EnginePool) -> None:
        with pytest.raises(InvalidRequest, match=message):
            await asyncio.wait_for(replicas.generate([sentence(3), request(source, params)]), 1.0)
        assert replicas.status().waiting == replicas.status().running == 0

    with_replicas([FakeRunner(copying_table(VOCAB))], scenario)


def test_a_call_that_arrives_while_the_engines_close_is_rejected_or_completed() -> None:
    class Slow(list[Request]):
        """Requests that close all engines when they are iterated over."""

        def __iter__(self) -> Iterator[Request]:
            if not replicas.status().draining:
                replicas.close()
            return super().__iter__()

    replicas = EnginePool(fake_bundle(VOCAB), [FakeRunner(copying_table(VOCAB))], PoolOptions())
    replicas.start()
    with pytest.raises(Draining):
        asyncio.run(asyncio.wait_for(replicas.generate(Slow([sentence(3)])), 1.0))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, threads have no priority of their own")
def test_engine_threads_have_the_requested_niceness() -> None:
    options = PoolOptions(replicas=2, niceness=3)
    replicas = EnginePool(fake_bundle(VOCAB), [FakeRunner(copying_table(VOCAB)) for _ in range(2)], options)
    before = set(threading.enumerate())  # engines of other tests among them
    replicas.start()
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        asyncio.run(replicas.generate([sentence(2), sentence(3)]))
        started = set(threading.enumerate()) - before
        engines = [thread.native_id for thread in started if thread.name.startswith("engine-")]
        assert [os.getpriority(os.PRIO_PROCESS, native_id or 0) for native_id in engines] == [min(ours + 3, 19)] * 2
    finally:
        replicas.close()


def test_closing_ends_the_threads_and_a_closed_engine_accepts_no_request() -> None:
    before = set(threading.enumerate())
    replicas = EnginePool(
        fake_bundle(VOCAB), [FakeRunner(copying_table(VOCAB)) for _ in range(2)], PoolOptions(replicas=2)
    )
    replicas.start()
    assert {thread.name for thread in set(threading.enumerate()) - before} == {"engine-0", "engine-1"}
    replicas.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(Draining):
        asyncio.run(asyncio.wait_for(replicas.generate([sentence(2)]), PATIENCE_SECONDS))


def test_engines_that_were_never_started_can_be_closed() -> None:
    EnginePool(fake_bundle(VOCAB), [FakeRunner(copying_table(VOCAB))], PoolOptions()).close()


def test_the_heartbeat_is_as_old_as_the_step_that_hangs() -> None:
    runner = HeldRunner()

    async def scenario(replicas: EnginePool) -> None:
        task = begin(replicas, sentence(2))
        await reached(runner.entered)
        age = replicas.status().heartbeat_age_seconds
        await until(lambda: replicas.status().heartbeat_age_seconds > age)
        runner.go_on.set()
        await task
        await until(lambda: replicas.status().running == 0)

    with_replicas([runner], scenario)


def test_a_model_that_cannot_decode_one_sentence_does_not_start() -> None:
    runner = FakeRunner(copying_table(VOCAB))
    runner.decode_error = RuntimeError("no kernel for this device")
    replicas = EnginePool(fake_bundle(VOCAB), [runner], PoolOptions())
    with pytest.raises(EngineFailed):
        replicas.warm_up_and_start()
