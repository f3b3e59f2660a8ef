import asyncio
import time
from dataclasses import replace

import pytest

from server.interface.errors import Draining
from server.interface.request import FinishReason, Request, Sampling
from server.workers.sentence_cache import CachedEngineClient
from tests.fakes.cached_echo import (
    GREEDY,
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
from tests.fakes.echo import EchoGenerator, EchoStatus
from tests.fakes.engine import END
from tests.fakes.sentence_params import changed, sentence_params


def test_a_sentence_that_was_decoded_is_answered_from_the_cache(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        [first] = await cached.generator.generate([ask(5, 6)])
        again = ask(5, 6)
        [second] = await cached.generator.generate([again])
        assert second == replace(first, request=again)

    run(scenario)
    assert cached.decoded == [[[5, 6, END]]]
    assert cached.watcher.outcomes == {"decoded": 1, "cached": 1}
    assert cached.watcher.num_kept == 1


def test_a_request_that_is_not_shared_is_decoded_for_its_call_alone(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    def ask_alone() -> Request:
        asked = ask(5)
        asked.cacheable = False
        return asked

    async def scenario() -> None:
        await cached.generator.generate([ask_alone()])
        await cached.generator.generate([ask(5)])
        gate = cached.hold()
        calls = [cached.begin(ask_alone()) for _ in range(2)]
        await joined(cached, *calls)
        gate.set()
        await asyncio.gather(*calls)

    run(scenario)
    assert cached.decoded == [[[5, END]]] * 4
    assert cached.watcher.outcomes == {"decoded": 4}
    assert cached.watcher.num_kept == 1


def test_samples_are_shared_in_flight_and_not_cached(echo: EchoGenerator) -> None:
    cached = Cached(echo)
    sampled = sentence_params(max_new_tokens=16, sampling=Sampling(seed=3))

    async def scenario() -> None:
        for _ in range(2):
            await cached.generator.generate([ask(5, params=sampled), ask(5, params=sampled)])

    run(scenario)
    assert cached.decoded == [[[5, END]]] * 2
    assert cached.watcher.outcomes == {"decoded": 2, "coalesced": 2}
    assert cached.watcher.num_kept == 0


def test_a_cached_answer_has_no_time_in_the_engine(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        await cached.generator.generate([ask(5)])
        asked = ask(5)
        await cached.generator.generate([asked])
        timings = asked.timings
        assert timings.queue_seconds == timings.encode_seconds == timings.decode_seconds == 0.0
        assert timings.arrived <= timings.first_token == timings.finished <= time.monotonic()

    run(scenario)


def test_a_sentence_that_occurs_often_in_one_call_is_decoded_once(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        requests = [ask(7, 8), ask(5), ask(7, 8), ask(7, 8)]
        completions = await cached.generator.generate(requests)
        assert tokens_of(completions) == [[7, 8], [5], [7, 8], [7, 8]]
        assert [completion.request for completion in completions] == requests

    run(scenario)
    assert cached.decoded == [[[7, 8, END], [5, END]]]
    assert cached.watcher.outcomes == {"decoded": 2, "coalesced": 2}


def test_other_parameters_are_another_sentence(echo: EchoGenerator) -> None:
    cached = Cached(echo)
    all_params = [
        GREEDY,
        replace(GREEDY, beam_size=2),
        changed(GREEDY, length_penalty=0.5),
        replace(GREEDY, max_new_tokens=15),
        replace(GREEDY, beam_size=2, num_hypotheses=2),
        changed(GREEDY, early_stopping=True),
        changed(GREEDY, return_scores=True),
    ]

    async def scenario() -> None:
        for _ in range(2):
            completions = await cached.generator.generate([ask(5, 6, 7, params=params) for params in all_params])
            assert [len(completion.hypotheses) for completion in completions] == [1, 1, 1, 1, 2, 1, 1]

    run(scenario)
    assert cached.watcher.outcomes == {"decoded": 7, "cached": 7}


def test_changing_an_answer_does_not_change_those_of_other_calls(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        for _ in range(3):
            for completion in await cached.generator.generate([ask(5, 6), ask(5, 6)]):
                assert tokens_of([completion]) == [[5, 6]]
                completion.hypotheses[0].token_ids.append(99)
                completion.hypotheses.clear()

    run(scenario)


def test_the_least_recently_used_sentence_is_evicted_first(echo: EchoGenerator) -> None:
    cached = Cached(echo, max_sentences=2)

    async def scenario() -> None:
        for tokens in ((5,), (6,), (5,), (7,), (5,), (6,)):
            assert tokens_of(await cached.generator.generate([ask(*tokens)])) == [list(tokens)]

    run(scenario)
    assert cached.decoded == [[[5, END]], [[6, END]], [[7, END]], [[6, END]]]
    assert cached.watcher.num_kept == 2


def test_a_call_of_more_sentences_than_the_cache_holds_is_complete(echo: EchoGenerator) -> None:
    cached = Cached(echo, max_sentences=2)

    async def scenario() -> None:
        for _ in range(2):
            completions = await cached.generator.generate([ask(token) for token in range(3, 8)])
            assert tokens_of(completions) == [[3], [4], [5], [6], [7]]

    run(scenario)
    assert cached.watcher.num_kept == 2


def test_without_a_cache_every_sentence_goes_to_the_engine(echo: EchoGenerator) -> None:
    cached = Cached(echo, max_sentences=0)

    async def scenario() -> None:
        gate = cached.hold()
        requests = [ask(5), ask(5)]
        calls = [cached.begin(*requests), cached.begin(ask(5))]
        await joined(cached, *calls)
        gate.set()
        await asyncio.gather(*calls)
        assert echo.batches[0] == requests

    run(scenario)
    assert [len(batch) for batch in echo.batches] == [2, 1]
    assert cached.watcher.outcomes == {"decoded": 3}


def test_a_call_without_sentences_has_no_completions(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def scenario() -> None:
        assert await cached.generator.generate([]) == []

    run(scenario)
    assert echo.batches == []


@pytest.mark.parametrize("reason", [FinishReason.CANCELLED, FinishReason.DEADLINE])
def test_an_unfinished_answer_is_not_cached(echo: EchoGenerator, reason: FinishReason) -> None:
    cached = Cached(echo)
    echo.finish_reason = reason

    async def scenario() -> None:
        for _ in range(2):
            [unfinished] = await cached.generator.generate([ask(5)])
            assert unfinished.finish_reason is reason

    run(scenario)
    assert len(echo.batches) == 2
    assert cached.watcher.outcomes.total() == 0


def test_an_answer_ended_by_its_limit_is_cached(echo: EchoGenerator) -> None:
    cached = Cached(echo)
    echo.finish_reason = FinishReason.LENGTH

    async def scenario() -> None:
        for _ in range(2):
            [cut] = await cached.generator.generate([ask(5)])
            assert cut.finish_reason is cut.hypotheses[0].finish_reason is FinishReason.LENGTH

    run(scenario)
    assert len(echo.batches) == 1


def test_answers_outlive_the_event_loop_and_requests_in_flight_do_not(echo: EchoGenerator) -> None:
    cached = Cached(echo)

    async def abandon() -> None:
        cached.hold()
        cached.begin(ask(6))
        await cached.generator.generate([ask(6, expires_in=SOON_SECONDS)])

    async def both() -> None:
        echo.gate = None
        assert tokens_of(await cached.generator.generate([ask(5), ask(6)])) == [[5], [6]]

    run(both)
    cached.generator._answers = type(cached.generator._answers)(9, 10**6)
    run(abandon)
    assert cached.generator._in_flight == {}
    run(both)
    run(both)
    assert cached.watcher.outcomes == {"decoded": 4, "cached": 2}


def test_status_bundle_and_end_are_those_of_the_engine(echo: EchoGenerator) -> None:
    cached = Cached(echo)
    echo.shown_status = EchoStatus(waiting=3)
    assert cached.generator.bundle is echo.bundle
    assert cached.generator.status().waiting == 3
    cached.generator.close()
    assert echo.is_closed


def _answers(max_sentences: int) -> list[list[str]]:
    """Return the answers of one engine to many overlapping calls, with repeated sentences."""
    beams = sentence_params(beam_size=3, num_hypotheses=2, max_new_tokens=12, return_scores=True)
    sources = [(token, other) for token in range(3, 8) for other in (3, 9)]
    kinds = [(source, params) for source in sources for params in (GREEDY, beams)]
    replicas = random_replicas()
    replicas.start()
    generator = CachedEngineClient(replicas, max_sentences, Watcher())
    answers: list[list[str]] = []

    async def scenario() -> None:
        calls = [kinds[begin::3] + kinds[:4] for begin in range(3)] + [[kind] for kind in kinds]
        for _ in range(2):
            asked = [[ask(*source, params=params) for source, params in call] for call in calls]
            completed = await asyncio.gather(*map(generator.generate, asked))
            answers.extend([str(completion.hypotheses) for completion in done] for done in completed)

    try:
        run(scenario)
    finally:
        generator.close()
    return answers


def test_answers_are_the_same_with_and_without_a_cache() -> None:
    uncached = _answers(max_sentences=0)
    assert _answers(max_sentences=7) == _answers(max_sentences=100) == uncached
    assert len({answer for call in uncached for answer in call}) > 10, "a poor test: few different answers"


def test_a_draining_engine_rejects_new_requests_and_completes_shared_ones() -> None:
    replicas = random_replicas()
    generator = CachedEngineClient(replicas, 100, Watcher())

    async def scenario() -> None:
        calls = [asyncio.create_task(generator.generate([ask(4)])) for _ in range(2)]
        await queued(replicas, 1)
        draining = asyncio.create_task(generator.drain(PATIENCE_SECONDS))
        await asyncio.sleep(0)
        replicas.start()
        [first], [second] = await asyncio.gather(*calls)
        assert first.hypotheses == second.hypotheses
        assert await draining
        with pytest.raises(Draining):
            await generator.generate([ask(4)])

    try:
        run(scenario)
    finally:
        generator.close()
