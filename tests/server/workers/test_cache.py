"""The cache before an engine: answers, requests in flight shared by calls, its size, and calls to a full engine."""

import asyncio
import gc
import time
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import Draining, QueueFull
from server.interface.request import (
    Completion,
    FinishReason,
    Hypothesis,
    Request,
    Sampling,
    SentenceParams,
    Timings,
    TokenDetails,
)
from server.workers.cache import Answer, AnswerStore, CachedEngineClient, SentenceKeys, key_bytes
from tests.fakes.cached_echo import (
    GREEDY,
    PATIENCE_SECONDS,
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


def _admitted(client: CachedEngineClient, num_calls: int) -> list[int]:
    """Return the numbers of the calls that were admitted, from 1."""
    admitted = []
    for number in range(1, num_calls + 1):
        try:
            client.check_admission()
        except QueueFull:
            continue
        admitted.append(number)
    return admitted


@pytest.fixture
def engine(echo_bundle: Bundle) -> EchoGenerator:
    return EchoGenerator(echo_bundle)


def test_a_full_engine_admits_calls_while_the_last_ones_found_sentences_and_else_one_in_sixteen(
    engine: EchoGenerator,
) -> None:
    client = CachedEngineClient(engine, 1000, Watcher())

    def admitted() -> list[int]:
        engine.error = QueueFull("full", 1.0)
        numbers = _admitted(client, 32)
        engine.error = None
        return numbers

    async def scenario() -> None:
        for _ in range(41):
            await client.generate([ask(5)])
        assert admitted() == list(range(1, 33)), "40 of 41 calls found their sentence"
        for number in range(127):
            await client.generate([ask(5, number)])
        assert admitted() == list(range(1, 33)), "the mean over the last 64 calls is just above a sixteenth"
        await client.generate([ask(5, 127)])
        assert admitted() == [16, 32]

    assert admitted() == [16, 32]
    run(scenario)


MAX_BYTES = 128 * 1024


@dataclass
class _DetailedEcho(EchoGenerator):
    """Engine whose answers have attention of some KiB, or a number of alternatives."""

    attention_kib: int = 0
    num_alternatives: int = 0

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        completions = await super().generate(requests)
        details = TokenDetails(
            [], [[(5, -1.0)]] * self.num_alternatives, np.zeros((self.attention_kib, 256), np.float32)
        )
        return [
            replace(done, hypotheses=[replace(each, details=details) for each in done.hypotheses])
            for done in completions
        ]


@pytest.mark.parametrize(("attention_kib", "num_alternatives"), [(0, 0), (3, 0), (0, 100), (64, 0), (200, 0)])
def test_as_many_answers_are_kept_as_fit(attention_kib: int, num_alternatives: int, echo_bundle: Bundle) -> None:
    engine = _DetailedEcho(echo_bundle, attention_kib=attention_kib, num_alternatives=num_alternatives)
    watcher = Watcher()
    generator = CachedEngineClient(engine, 18, watcher, MAX_BYTES)

    async def scenario() -> None:
        for token in range(20):
            assert (await generator.generate([ask(token)]))[0].hypotheses
        for token in range(20 - watcher.num_kept, 20):
            await generator.generate([ask(token)])

    run(scenario)
    assert watcher.outcomes == Counter(decoded=20, cached=watcher.num_kept)
    smallest = max(1024 * attention_kib + 100 * num_alternatives, 1000)
    assert watcher.num_kept <= min(MAX_BYTES // smallest, 18)
    assert (watcher.num_kept == 0) == (attention_kib == 200)
    assert watcher.num_bytes <= MAX_BYTES


def test_long_parameters_of_answers_stay_within_the_limit_of_bytes(echo_bundle: Bundle) -> None:
    watcher = Watcher()
    generator = CachedEngineClient(EchoGenerator(echo_bundle), 10_000, watcher, 1_000_000)

    async def scenario() -> None:
        for first in range(50):
            phrases = tuple(tuple(range(first + phrase, first + phrase + 100)) for phrase in range(64))
            await generator.generate([ask(5, params=sentence_params(suppress_phrases=phrases))])

    tracemalloc.start()
    try:
        run(scenario)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert watcher.num_bytes <= 1_000_000
    assert held < 3_000_000


def _request_with(*tokens: int, **params: object) -> Request:
    return Request(np.array(tokens, np.int32), SentenceParams(**params), Timings(0.0))  # type: ignore[arg-type]


def test_remembered_parameters_are_bounded_and_forgotten_ones_get_a_new_number() -> None:
    keys = SentenceKeys(8_000)
    large = [_request_with(5, 0, target_prefix=tuple(range(1000, 1000 + length))) for length in (100, 101)]
    first = keys.key(large[0])
    assert keys.key(large[0]) == first
    second = keys.key(large[1])
    assert keys.key(large[1]) == second, "the newest is remembered"
    assert keys.key(large[0]) not in (first, second), "the limit made room"


def test_many_small_parameters_are_bounded_as_well() -> None:
    keys = SentenceKeys(51_200)
    first = keys.key(_request_with(5, 0, max_new_tokens=1))
    for number in range(2, 101):
        keys.key(_request_with(5, 0, max_new_tokens=number))
    assert keys.key(_request_with(5, 0, max_new_tokens=1)) == first, "half a KiB each"
    for number in range(101, 150):
        keys.key(_request_with(5, 0, max_new_tokens=number))
    assert keys.key(_request_with(5, 0, max_new_tokens=1)) != first


def test_long_strings_in_options_count() -> None:
    keys = SentenceKeys(20_000)
    long = [_request_with(5, 0, options=DecodingOptions(suppress_phrases=(letter * 200,) * 15)) for letter in "ab"]
    first = keys.key(long[0])
    keys.key(long[1])
    assert keys.key(long[0]) != first, "12 KB each"


_KEYS = st.sampled_from([bytes(number) for number in (1, 2, 3, 40, 400, 1800)])


@given(st.lists(st.tuples(st.sampled_from(["add", "add", "get", "clear"]), _KEYS), max_size=40), st.integers(0, 4))
def test_a_store_has_the_latest_answers_that_fit_and_their_size(
    operations: list[tuple[str, bytes]], max_sentences: int
) -> None:
    max_bytes = key_bytes(bytes(1800)) - 1  # the largest does not fit by itself, and two of 400 and one of 40 do
    store, expected = AnswerStore(max_sentences, max_bytes), dict[bytes, Answer]()
    for number, (operation, key) in enumerate(operations):
        answer = Answer((), FinishReason.STOP, ValueError(number))
        if operation == "clear":
            store.clear()
            expected.clear()
        elif operation == "get":
            assert store.get(key) is expected.get(key)
            if key in expected:
                expected[key] = expected.pop(key)  # the most recently used one
        else:
            store.add(key, answer)
            expected.pop(key, None)
            if max_sentences and key_bytes(key) <= max_bytes:
                expected[key] = answer
            while len(expected) > max_sentences or sum(map(key_bytes, expected)) > max_bytes:
                del expected[next(iter(expected))]
        assert (len(store), store.num_bytes) == (len(expected), sum(map(key_bytes, expected)))
    assert [store.get(key) for key in expected] == list(expected.values())


_NUMBERS = st.integers(0, 9)


@given(st.integers(0, 3), _NUMBERS, _NUMBERS, _NUMBERS, st.none() | _NUMBERS, st.none() | _NUMBERS)
def test_the_size_of_an_answer_is_that_of_its_hypotheses_tokens_and_details(
    num_hypotheses: int, tokens: int, numbers: int, pairs: int, attention: int | None, embedding: int | None
) -> None:
    weights = None if attention is None else np.zeros((attention, 3), np.float32)
    vector = None if embedding is None else np.zeros(embedding, np.float32)
    details = TokenDetails([0.0] * numbers, [[(5, -1.0)] * pairs], weights)
    hypothesis = Hypothesis([7] * tokens, 0.0, 0.0, FinishReason.STOP, details, vector)
    answer = Answer.of(Completion(ask(5), [hypothesis] * num_hypotheses, FinishReason.STOP))
    of_one = 512 + 4 * tokens + 32 * numbers + 128 * pairs + 12 * (attention or 0) + 4 * (embedding or 0)
    assert answer.num_bytes == num_hypotheses * of_one
