"""Engines behind one queue: calls, streams, replicas, drain and close; long calls are fed part by part."""

import asyncio
import os
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest

from server.engine.engine import StreamUpdate
from server.engine.fair_queue import SHORT_CALL
from server.interface.client_identity import NO_LIMITS, ClientLimits, client_of_call, limits_of_client
from server.interface.errors import Draining, EngineFailed, InvalidRequest, QueueFull
from server.interface.request import Completion, FinishReason, Hypothesis, Request, SentenceParams, Timings
from server.workers.pool import EnginePool, PendingCall, PoolOptions, settle, stream
from tests.fakes.cached_echo import ask, queued, run, tokens_of
from tests.fakes.engine import END, FakeRunner, copying_table, fake_bundle, random_table, request
from tests.fakes.event_loop import in_event_loop, until
from tests.fakes.held_worker import (
    PATIENCE_SECONDS,
    VOCAB,
    HeldRunner,
    begin,
    reached,
    sentence,
    tokens,
    with_replicas,
)
from tests.fakes.sentence_params import sentence_params


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


def test_a_model_that_cannot_decode_one_sentence_does_not_start() -> None:
    runner = FakeRunner(copying_table(VOCAB))
    runner.decode_error = RuntimeError("no kernel for this device")
    replicas = EnginePool(fake_bundle(VOCAB), [runner], PoolOptions())
    with pytest.raises(EngineFailed):
        replicas.warm_up_and_start()


MAX_WAITING = 160
MAX_OF_A_CALL = 40


def _pool_of_a_small_queue() -> EnginePool:
    runner = FakeRunner(random_table(seed=3, vocab=12, end_bias=-1.0))
    return EnginePool(fake_bundle(12), [runner], PoolOptions(max_rows=16, max_waiting=MAX_WAITING))


def test_a_call_of_more_sentences_than_the_queue_is_fed_in_turn() -> None:
    pool = _pool_of_a_small_queue()
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
    pool = _pool_of_a_small_queue()

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
    pool = _pool_of_a_small_queue()

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
    pool = _pool_of_a_small_queue()

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


def test_calls_that_end_together_leave_the_event_loop_turns_for_what_arrives() -> None:
    order: list[str] = []

    async def wait(call: PendingCall) -> None:
        await call.completions()
        order.append("call")

    async def main() -> None:
        requests = [request([7, 2]) for _ in range(4)]
        calls = {PendingCall([each]): [Completion(each, [], FinishReason.STOP)] for each in requests}
        waiting = [asyncio.create_task(wait(call)) for call in calls]
        await asyncio.sleep(0)
        settle(calls)
        for _ in range(2 * len(requests)):
            await asyncio.sleep(0)
            order.append("arrival")
        await asyncio.gather(*waiting)

    asyncio.run(main())
    calls = [index for index, name in enumerate(order) if name == "call"]
    assert len(calls) == 4
    assert all("arrival" in order[first:second] for first, second in pairwise(calls))


def _streaming() -> tuple[Request, list[tuple[list[int], bool]]]:
    """Return a request, and what its stream receives."""
    received: list[tuple[list[int], bool]] = []
    streaming = request([7, 2])
    streaming.on_progress = lambda tokens, is_complete: received.append((tokens, is_complete))
    return streaming, received


def test_a_stream_receives_tokens_that_it_has_not_received() -> None:
    streaming, received = _streaming()
    plain = request([8, 2])
    stream([StreamUpdate(streaming, [1]), StreamUpdate(plain, [5]), StreamUpdate(streaming, [1, 2])])
    for retried in ([1], [1, 2], [1, 2, 3]):  # by another engine, after the death of the first
        stream([StreamUpdate(streaming, retried)])
    assert received == [([1], False), ([1, 2], False), ([1, 2, 3], False)]


@in_event_loop
async def test_a_stream_receives_the_whole_answer_once() -> None:
    streaming, received = _streaming()
    failed, failures = _streaming()
    completed: list[Completion] = []
    streaming.on_completed = failed.on_completed = completed.append
    plain = request([9, 2])
    call = PendingCall([streaming, failed, plain])
    whole = Completion(streaming, [Hypothesis([1, 2], 0.0, 0.0, FinishReason.STOP)], FinishReason.STOP)
    settle({call: [whole, Completion(plain, [], FinishReason.STOP)]})
    settle({call: [whole, Completion(failed, [], FinishReason.CANCELLED)]})
    assert received == [([1, 2], True)]
    assert failures == []
    assert completed == [whole]
    assert [each.request for each in await call.completions()] == [streaming, failed, plain]


def _completion(request: Request, reason: FinishReason = FinishReason.STOP) -> Completion:
    return Completion(request, [], reason)


@pytest.fixture
def three() -> list[Request]:
    return [Request(np.array([token, 0], np.int32), SentenceParams(), Timings(0.0)) for token in (5, 6, 7)]


@in_event_loop
async def test_completions_are_in_the_order_of_the_requests(three: list[Request]) -> None:
    call = PendingCall(three)
    counted: list[int] = []
    call.on_completed = counted.append
    call.add([_completion(three[2])])
    assert [call.has_completed(each) for each in three] == [False, False, True]
    call.add([_completion(three[2], FinishReason.LENGTH), _completion(three[0])])
    call.add([])
    call.add([_completion(three[1])])
    done = await call.completions()
    assert [each.request for each in done] == three
    assert done[2].finish_reason == FinishReason.STOP, "the first completion of a request counts"
    assert counted == [1, 1, 0], "the last one ends the call instead"
