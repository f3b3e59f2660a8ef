"""Long streams: blocks of sentences in reading order, each with rounds of its own."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

import pytest

from bundle.loading import Bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import DeadlineExceeded, EngineFailed, QueueFull
from server.interface.request import Completion, Request
from server.text.tokenizers.registry import open_tokenizer
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.rounds import BLOCK_SENTENCES as BLOCK
from server.translation.text_stream import TextStream
from server.translation.types import TranslationRequest, TranslationResult
from tests.fakes.echo import make_bundle
from tests.fakes.held_worker import until
from tests.server.text.identity import LETTERS, IdentityEngine

LOST = "Where is {name}"  # in the first round


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("letters"), sentences=LETTERS)


class Held(IdentityEngine):
    """Answers the requests that a test names, and reports them. In its first call, answers lack an item at the end."""

    def __init__(self, bundle: Bundle, *, reports: bool = True) -> None:
        super().__init__(bundle)
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

    def _complete(self, request: Request) -> Completion:
        done = super()._complete(request)
        tokens = done.hypotheses[0].token_ids
        is_lost = request in self.batches[0] and open_tokenizer(self.bundle).decode(tokens).endswith("{name}")
        return replace(done, hypotheses=[replace(done.hypotheses[0], token_ids=tokens[:-1])]) if is_lost else done


class Streaming:
    """A running translation of lines, with the text that its reader has taken."""

    def __init__(self, engine: Held, lines: Sequence[str], **fields: object) -> None:
        self.engine = engine
        self.stream = TextStream()
        self.taken = ""
        asked = replace(TranslationRequest(("\n".join(lines),), "en", "de"), **fields)  # type: ignore[arg-type]
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
    asyncio.run(asyncio.wait_for(scenario(), 20.0))


def _words() -> Iterator[str]:
    """Yield words of different lengths."""
    return ("".join(letters) * (1 + index % 3) for index, letters in enumerate(product("dogjumps", repeat=3)))


def _lines(number: int, *lost: int) -> list[str]:
    """Return lines of which those at `lost` lose an item in the first round."""
    lines = [f"the {word}" for word in islice(_words(), number)]
    for index in lost:
        lines[index] = LOST
    return lines


def _numbers_of(bundle: Bundle, requests: Iterable[Request], lines: Sequence[str]) -> list[int]:
    tokenizer = open_tokenizer(bundle)
    return [lines.index(tokenizer.decode(each.source.tolist())) for each in requests]


def _begins_with(text: str, lines: Sequence[str]) -> bool:
    return text.startswith("\n".join(lines))


def _blocks(lines: Sequence[str]) -> list[list[int]]:
    """Return the indices of the lines in blocks, longest first in each."""
    blocks = [range(start, min(start + BLOCK, len(lines))) for start in range(0, len(lines), BLOCK)]
    return [sorted(block, key=lambda index: len(lines[index]), reverse=True) for block in blocks]


def test_a_long_stream_is_decoded_in_reading_order_and_other_calls_longest_first(bundle: Bundle) -> None:
    lines = _lines(3 * BLOCK - 10)

    async def scenario() -> None:
        streaming = Streaming(Held(bundle), lines)
        order = _numbers_of(bundle, await streaming.call(0), lines)
        assert [sorted(order[start : start + BLOCK]) for start in (0, BLOCK, 2 * BLOCK)] == [
            sorted(block) for block in _blocks(lines)
        ]
        lengths = [len(request.source) for request in streaming.engine.batches[0]]
        for start in (0, BLOCK, 2 * BLOCK):
            assert lengths[start : start + BLOCK] == sorted(lengths[start : start + BLOCK], reverse=True)
        assert lengths != sorted(lengths, reverse=True)
        streaming.task.cancel()
        short = Streaming(Held(bundle), lines[:BLOCK])
        engine = Held(bundle)
        plain = asyncio.create_task(
            Pipeline(engine, TranslationLimits()).translate(TranslationRequest(("\n".join(lines),), "en", "de"))
        )
        await until(lambda: bool(engine.batches))
        for requests in (await short.call(0), engine.batches[0]):
            lengths = [len(request.source) for request in requests]
            assert lengths == sorted(lengths, reverse=True)
            assert all(request.on_completed is None for request in requests)
        for task in (short.task, plain):
            task.cancel()

    run(scenario)


def test_a_block_is_settled_while_the_engine_decodes_the_later_ones(bundle: Bundle) -> None:
    lines = _lines(3 * BLOCK, 5)

    async def scenario() -> None:
        streaming = Streaming(Held(bundle), lines)
        first_round = await streaming.call(0)
        streaming.engine.answer(first_round[:BLOCK])
        second_round = await streaming.call(1)
        assert len(second_round) == 1
        assert all(each.accepted_earlier for each in second_round)
        assert {each.round_of for each in second_round} == {each.timings.arrived for each in first_round}
        assert not any(each.accepted_earlier or each.round_of for each in first_round)
        await until(lambda: _begins_with(streaming.take(), lines[:5]))
        streaming.engine.answer(first_round[BLOCK : 2 * BLOCK])
        assert not _begins_with(streaming.take(), lines[:6])
        streaming.engine.answer(second_round)
        # The second block has waited for nothing but the text before it.
        await until(lambda: _begins_with(streaming.take(), lines[: 2 * BLOCK]))
        assert not streaming.task.done()
        streaming.engine.answer(first_round[2 * BLOCK :])
        assert (await streaming.task).translations[0].text == "\n".join(lines) == streaming.take()

    run(scenario)


@pytest.mark.parametrize("reports", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_a_stream_has_the_answer_of_the_call_without_one(bundle: Bundle, reports: bool, seed: int) -> None:
    drawn = random.Random(seed)
    lines = _lines(200, *drawn.sample(range(200), 12))
    lines.insert(100, "42 ...")  # not decoded

    async def scenario() -> None:
        engine = Held(bundle, reports=reports)
        streaming = Streaming(engine, lines)
        streamed = await streaming.result(drawn)
        alone = Held(bundle)
        asked = TranslationRequest(("\n".join(lines),), "en", "de")
        call = asyncio.create_task(Pipeline(alone, TranslationLimits()).translate(asked))
        while not call.done():
            alone.answer([each for batch in alone.batches for each in batch])
            await asyncio.sleep(0)
        assert streaming.taken == streamed.translations[0].text == call.result().translations[0].text
        assert streamed.translations == call.result().translations
        assert streamed.sentence_tokens == call.result().sentence_tokens
        assert sum(map(len, engine.batches)) == sum(map(len, alone.batches))

    run(scenario)


def test_all_blocks_and_rounds_of_a_call_have_one_seed(bundle: Bundle) -> None:
    lines = _lines(2 * BLOCK + 1, 1, BLOCK + 4)

    async def scenario() -> None:
        streaming = Streaming(Held(bundle), lines, options=DecodingOptions(temperature=0.5))
        result = await streaming.result(random.Random(0))
        requests = [each for batch in streaming.engine.batches for each in batch]
        assert len(requests) >= len(lines) + 2
        assert {each.params.sampling.seed for each in requests if each.params.sampling} == {result.seed}

    run(scenario)


def test_a_full_queue_rejects_the_call_before_any_text(bundle: Bundle) -> None:
    async def scenario() -> None:
        engine = Held(bundle)
        engine.error = QueueFull("full", 1.0)
        streaming = Streaming(engine, _lines(3 * BLOCK, 5))
        with pytest.raises(QueueFull):
            await streaming.task
        assert streaming.take() == ""
        assert len(engine.batches) == 1

    run(scenario)


def test_cancelling_a_stream_cancels_the_rounds_of_all_blocks(bundle: Bundle) -> None:
    lines = _lines(3 * BLOCK, 5, BLOCK)

    async def scenario() -> None:
        streaming = Streaming(Held(bundle), lines)
        streaming.engine.answer((await streaming.call(0))[: 2 * BLOCK])
        await streaming.call(2)
        streaming.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await streaming.task
        assert streaming.engine.num_cancelled == len(lines) + 2

    run(scenario)


def test_an_error_in_a_further_round_ends_the_call(bundle: Bundle) -> None:
    lines = _lines(2 * BLOCK, 5)

    class Failing(Held):
        async def generate(self, requests: Sequence[Request]) -> list[Completion]:
            if self.batches:
                raise EngineFailed("broken")
            return await super().generate(requests)

    async def scenario() -> None:
        streaming = Streaming(Failing(bundle), lines)
        streaming.engine.answer((await streaming.call(0))[:BLOCK])
        with pytest.raises(EngineFailed, match="broken"):
            await streaming.task
        assert streaming.engine.num_cancelled == len(lines)

    run(scenario)


@pytest.mark.parametrize(("num_answered", "encode_seconds"), [(BLOCK, 0.0), (2 * BLOCK, 0.002)])
def test_a_deadline_ends_all_rounds_and_its_error_has_the_times(
    bundle: Bundle, num_answered: int, encode_seconds: float
) -> None:
    lines = _lines(2 * BLOCK, 5)

    async def scenario() -> None:
        streaming = Streaming(Held(bundle), lines, timeout_seconds=1.0)
        first_round = await streaming.call(0)
        streaming.engine.answer(first_round[:num_answered])
        await streaming.call(1)
        with pytest.raises(DeadlineExceeded) as caught:
            await streaming.task
        unanswered = len(lines) if num_answered == BLOCK else 0
        assert streaming.engine.num_cancelled == unanswered + 1
        # An unfinished first round has all times; else the second round adds its own to the times of its block.
        assert caught.value.phase_seconds["encode"] == pytest.approx(encode_seconds)
        assert caught.value.phase_seconds["queue"] > 0.001

    run(scenario)
