"""Long streams: blocks of sentences in reading order, each with attempts of its own; the text is the plain answer."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.interface.decoding_options import DecodingOptions
from server.interface.errors import DeadlineExceeded, EngineFailed, QueueFull
from server.interface.request import Completion, Request
from server.translation.attempts import BLOCK_SENTENCES as BLOCK
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.text_stream import TextStream
from server.translation.types import TextFormat, TranslationRequest, TranslationResult
from tests.fakes.event_loop import until
from tests.fakes.hostile_engines import HOSTILE
from tests.fakes.rule_engine import RuleEngine, byte_bundle

LOST = "Where is {name}"  # in the first attempt
OPTIONS = DecodingOptions(if_already_target="translate")


class Held(RuleEngine):
    """Answers the requests that a test names, and reports them. In its first call, answers lack a span at the end."""

    def __init__(self, *, reports: bool = True) -> None:
        super().__init__(byte_bundle(), str)
        self._reports = reports
        self._answers: dict[int, Completion] = {}

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Return the answers once a test has given all."""
        self.batches.append(list(requests))
        try:
            await until(lambda: self.error is not None or all(each.id in self._answers for each in requests))
        except asyncio.CancelledError:
            self.num_cancelled += len(requests)
            raise
        if self.error is not None:
            raise self.error
        return [self._answers[each.id] for each in requests]

    def answer(self, requests: Iterable[Request]) -> None:
        """Complete requests."""
        for request in requests:
            self._answers[request.id] = done = self._complete(request)
            if self._reports:
                done.report()

    def answers(self, request: Request) -> Sequence[str]:
        """Return the source, in the first call without a span at the end."""
        [text] = super().answers(request)
        return [text.removesuffix("}") if request in self.batches[0] else text]


class Streaming:
    """A running translation of lines, with the text that its reader has taken."""

    def __init__(self, engine: Held, lines: Sequence[str], **fields: object) -> None:
        self.engine = engine
        self.stream = TextStream()
        self.taken = ""
        asked = replace(TranslationRequest(("\n".join(lines),), "en", "de", OPTIONS), **fields)  # type: ignore[arg-type]
        self.task = asyncio.create_task(Pipeline(engine, TranslationLimits()).translate(asked, self.stream))

    async def call(self, number: int) -> list[Request]:
        """Return the requests of the engine's call with this number."""
        await until(lambda: len(self.engine.batches) > number or self.task.done())
        return self.engine.batches[number]

    def take(self) -> str:
        """Return all text so far."""
        while self.stream.has_news:
            self.taken += "".join(delta.text for delta in self.stream.take())
        return self.taken

    async def result(self, shuffled: random.Random) -> TranslationResult:
        """Answer everything in a random order, and return the result."""
        answered: set[int] = set()
        while not self.task.done():
            open_requests = [each for batch in self.engine.batches for each in batch if each.id not in answered]
            chosen = shuffled.sample(open_requests, min(len(open_requests), 25))
            self.engine.answer(chosen)
            answered.update(each.id for each in chosen)
            self.take()
            await asyncio.sleep(0)
        self.take()
        return self.task.result()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 120.0))


def _lines(number: int, *lost: int) -> list[str]:
    """Return lines of different lengths, of which those at `lost` lose a span in the first attempt."""
    words = ("".join(letters) * (1 + index % 3) for index, letters in enumerate(product("dogjumps", repeat=3)))
    lines = [f"the {word}" for word in islice(words, number)]
    for index in lost:
        lines[index] = LOST
    return lines


def test_a_long_stream_is_decoded_in_reading_order_and_other_calls_longest_first() -> None:
    lines = _lines(3 * BLOCK - 10)

    async def scenario() -> None:
        streaming = Streaming(Held(), lines)
        await streaming.call(0)
        read = streaming.engine.read
        for start in range(0, len(lines), BLOCK):
            block = lines[start : start + BLOCK]
            assert sorted(read[start : start + BLOCK]) == sorted(block)
            assert list(map(len, read[start : start + BLOCK])) == sorted(map(len, block), reverse=True)
        assert read != sorted(read, key=len, reverse=True)
        streaming.task.cancel()
        short, plain = Streaming(Held(), lines[:BLOCK]), Held()
        asked = TranslationRequest(("\n".join(lines),), "en", "de", OPTIONS)
        task = asyncio.create_task(Pipeline(plain, TranslationLimits()).translate(asked))
        await until(lambda: bool(plain.batches))
        for requests in (await short.call(0), plain.batches[0]):
            lengths = [len(request.source) for request in requests]
            assert lengths == sorted(lengths, reverse=True)
            assert all(request.on_completed is None for request in requests)
        short.task.cancel()
        task.cancel()

    run(scenario)


def test_a_block_is_settled_while_the_engine_decodes_the_later_ones() -> None:
    lines = _lines(3 * BLOCK, 5)

    async def scenario() -> None:
        streaming = Streaming(Held(), lines)
        first = await streaming.call(0)
        streaming.engine.answer(first[:BLOCK])
        second = await streaming.call(1)
        assert len(second) == 1
        assert all(each.accepted_earlier for each in second)
        assert {each.round_of for each in second} == {each.timings.arrived for each in first}
        assert not any(each.accepted_earlier or each.round_of for each in first)
        await until(lambda: streaming.take().startswith("\n".join(lines[:5])))
        streaming.engine.answer(first[BLOCK : 2 * BLOCK])
        assert not streaming.take().startswith("\n".join(lines[:6]))
        streaming.engine.answer(second)
        # The second block has waited for nothing but the text before it.
        await until(lambda: streaming.take().startswith("\n".join(lines[: 2 * BLOCK])))
        assert not streaming.task.done()
        streaming.engine.answer(first[2 * BLOCK :])
        assert (await streaming.task).translations[0].text == "\n".join(lines) == streaming.take()

    run(scenario)


@pytest.mark.parametrize("reports", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_a_stream_has_the_answer_of_the_call_without_one(reports: bool, seed: int) -> None:
    drawn = random.Random(seed)
    lines = _lines(200, *drawn.sample(range(200), 12))
    lines.insert(100, "42 ...")  # not decoded

    async def scenario() -> None:
        streaming = Streaming(Held(reports=reports), lines)
        streamed = await streaming.result(drawn)
        alone = Held()
        asked = TranslationRequest(("\n".join(lines),), "en", "de", OPTIONS)
        call = asyncio.create_task(Pipeline(alone, TranslationLimits()).translate(asked))
        while not call.done():
            alone.answer([each for batch in alone.batches for each in batch])
            await asyncio.sleep(0)
        assert streaming.taken == streamed.translations[0].text == call.result().translations[0].text
        assert streamed.translations == call.result().translations
        assert streamed.sentence_tokens == call.result().sentence_tokens
        assert sorted(streaming.engine.read) == sorted(alone.read)

    run(scenario)


def test_all_blocks_and_attempts_of_a_call_have_one_seed() -> None:
    lines = _lines(2 * BLOCK + 1, 1, BLOCK + 4)

    async def scenario() -> None:
        streaming = Streaming(Held(), lines, options=DecodingOptions(temperature=0.5, if_already_target="translate"))
        result = await streaming.result(random.Random(0))
        requests = [each for batch in streaming.engine.batches for each in batch]
        assert len(requests) >= len(lines) + 2
        assert {each.params.sampling.seed for each in requests if each.params.sampling} == {result.seed}

    run(scenario)


def test_a_full_queue_rejects_the_call_before_any_text() -> None:
    async def scenario() -> None:
        engine = Held()
        engine.error = QueueFull("full", 1.0)
        streaming = Streaming(engine, _lines(3 * BLOCK, 5))
        with pytest.raises(QueueFull):
            await streaming.task
        assert (streaming.take(), len(engine.batches)) == ("", 1)

    run(scenario)


def test_cancelling_a_stream_cancels_the_attempts_of_all_blocks() -> None:
    lines = _lines(3 * BLOCK, 5, BLOCK)

    async def scenario() -> None:
        streaming = Streaming(Held(), lines)
        streaming.engine.answer((await streaming.call(0))[: 2 * BLOCK])
        await streaming.call(2)
        streaming.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await streaming.task
        assert streaming.engine.num_cancelled == len(lines) + 2

    run(scenario)


def test_an_error_in_a_further_attempt_ends_the_call() -> None:
    lines = _lines(2 * BLOCK, 5)

    class Failing(Held):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            if self.batches:
                raise EngineFailed("broken")
            return await super().generate(requests)

    async def scenario() -> None:
        streaming = Streaming(Failing(), lines)
        streaming.engine.answer((await streaming.call(0))[:BLOCK])
        with pytest.raises(EngineFailed, match="broken"):
            await streaming.task
        assert streaming.engine.num_cancelled == len(lines)

    run(scenario)


@pytest.mark.parametrize(("num_answered", "encode_seconds"), [(BLOCK, 0.0), (2 * BLOCK, 0.002)])
def test_a_deadline_ends_all_attempts_and_its_error_has_the_times(num_answered: int, encode_seconds: float) -> None:
    lines = _lines(2 * BLOCK, 5)

    async def scenario() -> None:
        streaming = Streaming(Held(), lines, timeout_seconds=2.0)
        streaming.engine.answer((await streaming.call(0))[:num_answered])
        await streaming.call(1)
        with pytest.raises(DeadlineExceeded) as caught:
            await streaming.task
        unanswered = len(lines) if num_answered == BLOCK else 0
        assert streaming.engine.num_cancelled == unanswered + 1
        # An unfinished first round has all times; else the second adds its own to the times of its block.
        assert caught.value.phase_seconds["encode"] == pytest.approx(encode_seconds)
        assert caught.value.phase_seconds["queue"] > 0.0009  # a millisecond of the first round, in floating point

    run(scenario)


PIECES = (
    "The dog is here. ",
    "Where is {name}? ",
    "He has 20,000 dogs. ",
    "<b>So %s</b> ",
    "\n",
    "`x` and y, ",
    "12 ",
    "🎉 ",
)
ENGINES = {
    name: RuleEngine(byte_bundle(repairs=("numbers", "parts", "capitals")), rule) for name, rule in HOSTILE.items()
}


async def _streamed(engine: RuleEngine, request: TranslationRequest) -> tuple[list[str], list[str]]:
    stream = TextStream()
    done = await engine.pipeline.translate(request, stream)
    engine.batches.clear()
    taken = [""] * len(request.texts)
    while stream.has_news:
        for delta in stream.take(2):
            taken[delta.index] += delta.text
    return taken, [each.text for each in done.translations]


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), min_size=1, max_size=4),
    st.sampled_from(sorted(HOSTILE)),
    st.sampled_from(["text", "html"]),
)
def test_texts_are_the_same_streamed_and_not_in_company_and_alone(
    texts: list[str], rule: str, format_: TextFormat
) -> None:
    """With spans, numbers and tags, through models that copy or lose them."""

    def translated(*texts: str) -> tuple[list[str], list[str]]:
        request = TranslationRequest(texts, "en", "de", OPTIONS, format=format_)
        return asyncio.run(_streamed(ENGINES[rule], request))

    streamed, written = translated(*texts)
    assert streamed == written
    assert written == [each for text in texts for each in translated(text)[1]]
