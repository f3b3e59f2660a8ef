"""Streamed tokens on their way from engine threads to the event loop, and through the cache."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from server.interface.errors import QueueFull
from server.interface.request import Completion, Request
from server.workers.cache import CachedEngineClient
from server.workers.pool import EnginePool
from tests.fakes.cached_echo import Cached, Watcher, ask, joined, run
from tests.fakes.echo import EchoGenerator
from tests.fakes.event_loop import until
from tests.fakes.held_worker import HeldRunner, begin, reached, sentence, with_replicas

Received = list[tuple[list[int], bool]]


def _streamed(request: Request) -> tuple[Request, Received]:
    """Return a streaming request and the list of its updates."""
    received: Received = []
    request.on_progress = lambda token_ids, is_complete: received.append((token_ids, is_complete))
    return request, received


def _token_by_token(num_tokens: int) -> Received:
    return [*(([3] * count, False) for count in range(1, num_tokens + 1)), ([3] * num_tokens, True)]


def _with_cache(
    scenario: Callable[[CachedEngineClient, EnginePool, HeldRunner], Awaitable[None]], room: int = 100
) -> None:
    """Run a scenario with a cache before an engine whose steps wait."""
    runner = HeldRunner()

    async def begun(replicas: EnginePool) -> None:
        await scenario(CachedEngineClient(replicas, 100, Watcher()), replicas, runner)

    with_replicas([runner], begun, max_waiting=room)


def test_a_request_receives_tokens_before_its_answer_and_its_answer_before_others_end() -> None:
    runner = HeldRunner()
    received: list[tuple[int, list[int], bool]] = []

    async def scenario(replicas: EnginePool) -> None:
        loop_thread = threading.get_ident()
        requests = [sentence(3), sentence(4), sentence(6), sentence(5)]

        def listen_as(number: int) -> None:
            def listen(token_ids: list[int], is_complete: bool) -> None:
                assert threading.get_ident() == loop_thread
                assert not task.done()
                received.append((number, token_ids, is_complete))

            requests[number].on_progress = listen

        for number in range(3):  # the fourth does not listen
            listen_as(number)
        task = begin(replicas, *requests)
        runner.go_on.set()
        await task

    with_replicas([runner], scenario)
    for number, num_tokens in enumerate((2, 3, 5)):
        own = [(token_ids, is_complete) for each, token_ids, is_complete in received if each == number]
        assert own == _token_by_token(num_tokens)
    assert received.index((0, [3, 3], True)) < received.index((2, [3] * 4, False))


def test_a_cancelled_request_receives_no_tokens() -> None:
    runner = HeldRunner()
    asked, received = _streamed(sentence(60))

    async def scenario(replicas: EnginePool) -> None:
        task = begin(replicas, asked)
        await reached(runner.entered)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        runner.go_on.set()
        await until(lambda: replicas.status().running == 0)

    with_replicas([runner], scenario)
    assert received == []
    assert runner.cache.num_live == 0


def test_a_cached_answer_is_streamed_at_once_while_the_others_are_decoded() -> None:
    async def scenario(generator: CachedEngineClient, _: EnginePool, runner: HeldRunner) -> None:
        runner.go_on.set()
        await generator.generate([sentence(4)])
        runner.go_on.clear()
        (kept, received), (new, received_of_new) = _streamed(sentence(4)), _streamed(sentence(6))
        call = asyncio.create_task(generator.generate([new, kept]))
        await until(lambda: received != [])
        assert (received, received_of_new) == ([([3, 3, 3], True)], [])
        runner.go_on.set()
        await call
        assert received_of_new == _token_by_token(5)

    _with_cache(scenario)


def test_a_late_call_receives_the_earlier_tokens_and_then_the_rest() -> None:
    async def scenario(generator: CachedEngineClient, _: EnginePool, runner: HeldRunner) -> None:
        (first, received_first), (late, received_late) = _streamed(sentence(6)), _streamed(sentence(6))
        calls = [asyncio.create_task(generator.generate([first]))]
        runner.one_step()
        runner.one_step()
        await until(lambda: len(received_first) == 2)
        calls.append(asyncio.create_task(generator.generate([late])))
        await until(lambda: received_late == [([3, 3], False)])
        runner.go_on.set()
        await asyncio.gather(*calls)
        assert received_first == _token_by_token(5)
        assert received_late == received_first[1:]
        assert runner.encoded == [[(3, 3, 3, 3, 3, 0)]]

    _with_cache(scenario)


def test_a_sentence_that_streams_joins_only_those_that_stream_and_others_join_it(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        gate = cached.hold()
        calls = [
            cached.begin(ask(5)),
            cached.begin(_streamed(ask(5))[0]),  # decoded again
            cached.begin(_streamed(ask(5))[0]),
            cached.begin(ask(5)),
        ]
        await joined(cached, *calls)
        gate.set()
        await asyncio.gather(*calls)

    run(scenario)
    assert [[request.on_progress is not None for request in batch] for batch in echo.batches] == [[False], [True]]


@pytest.mark.parametrize("streams", [True, False])
def test_a_request_receives_its_completion_before_the_others_of_its_call(streams: bool) -> None:
    async def scenario(generator: CachedEngineClient, _: EnginePool, runner: HeldRunner) -> None:
        runner.go_on.set()
        await generator.generate([sentence(4)])
        runner.go_on.clear()
        completed: list[Completion] = []
        kept, short, same, long = asked = [sentence(4), sentence(3), sentence(3), sentence(60)]
        for request in asked:
            request.on_completed = completed.append
            if streams:
                _streamed(request)
        call = asyncio.create_task(generator.generate(asked))
        await until(lambda: len(completed) == 1)
        for _step in range(3):
            runner.one_step()
        await until(lambda: len(completed) == 3)
        (late := sentence(3)).on_completed = completed.append
        joining = asyncio.create_task(generator.generate([late, *(sentence(length) for length in (5, 6, 7))]))
        await until(lambda: len(completed) == 4)
        assert not call.done()
        assert [each.request for each in completed] == [kept, short, same, late]
        finished = [each.request.timings.finished for each in completed]
        runner.go_on.set()
        completions = [*(await call), (await joining)[0]]
        assert [each.request for each in completions] == [kept, short, same, long, late]
        early = {each.request.id: each.hypotheses for each in completed}
        assert all(early[each.request.id] == each.hypotheses for each in completions)
        assert [each.request.timings.finished for each in (completed[1], completed[3])] == [finished[1], finished[3]]
        lists = [id(each.hypotheses[0].token_ids) for each in [*completed[:4], *completions]]
        assert len(set(lists)) == len(lists)

    _with_cache(scenario)


@pytest.mark.parametrize("round_of", [100.0, None])
def test_the_engine_receives_the_place_of_a_streamed_request_in_the_queue(
    echo: EchoGenerator, round_of: float | None
) -> None:
    cached = Cached(echo)
    asked, _ = _streamed(ask(5, expires_in=60.0))
    asked.accepted_earlier, asked.round_of = round_of is not None, round_of

    async def scenario() -> None:
        await cached.generator.generate([asked])

    run(scenario)
    [[received]] = echo.batches
    assert received is not asked
    assert (received.accepted_earlier, received.round_of) == (asked.accepted_earlier, round_of)


def test_a_full_queue_rejects_a_call_before_any_token_is_streamed() -> None:
    async def scenario(generator: CachedEngineClient, replicas: EnginePool, runner: HeldRunner) -> None:
        runner.go_on.set()
        await generator.generate([sentence(4)])
        runner.go_on.clear()
        runner.entered.clear()
        running = begin(replicas, *(sentence(2, beam_size=8) for _ in range(2)))
        await reached(runner.entered)
        waiting = begin(replicas, *(sentence(2) for _ in range(40)))
        await until(lambda: replicas.status().waiting > 0)
        kept, received = _streamed(sentence(4))
        with pytest.raises(QueueFull):
            await generator.generate([kept, sentence(5)])
        assert received == []
        runner.go_on.set()
        await asyncio.gather(running, waiting)

    _with_cache(scenario, room=1)
