import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from server.interface.errors import EngineFailed
from server.interface.request import Request
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.text_stream import TextDelta, TextStream
from server.translation.types import TranslationRequest, TranslationResult
from tests.fakes.echo import SENTENCES, EchoGenerator

_TEXTS = (
    "  Good morning.  How are you today?\r\n\r\n",
    "",
    " \n",
    "---\n\nWhere is the dog?\n…\n The lazy dog jumps.",
    "\n".join(SENTENCES),
    "***",
)


class Streaming:
    """A running translation whose engine reports the tokens that a test sets."""

    def __init__(self, echo: EchoGenerator, *texts: str) -> None:
        self.echo = echo
        echo.gate = asyncio.Event()
        self.stream = TextStream()
        asked = TranslationRequest(texts, "en", "de")
        self.task = asyncio.create_task(Pipeline(echo, TranslationLimits()).translate(asked, self.stream))

    async def requests(self) -> list[Request]:
        """Return the requests that the engine received, longest first."""
        await self.echo.entered.wait()
        return self.echo.batches[-1]

    async def result(self) -> TranslationResult:
        """Let the engine answer, and return the result."""
        assert self.echo.gate is not None
        self.echo.gate.set()
        return await self.task


def report(request: Request, num_tokens: int) -> None:
    """Report this many tokens of the echo as final."""
    tokens = request.source[:-1].tolist()
    assert request.on_progress is not None
    request.on_progress(tokens[:num_tokens], num_tokens >= len(tokens))


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20.0))


def test_a_delta_is_the_text_that_became_final_since_the_last_one(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, " The dog.\n")
        [request] = await streaming.requests()
        assert not await streaming.stream.wait(0.0)
        texts = []
        for num_tokens in range(1, len(request.source)):
            report(request, num_tokens)
            texts += [piece.text for piece in streaming.stream.take()]
        assert "".join(texts) == " The dog.\n"
        assert len(texts) > 2
        assert texts[0].startswith(" T")
        assert [text.text for text in (await streaming.result()).translations] == [" The dog.\n"]
        assert streaming.stream.take() == []

    run(scenario)


def test_nothing_can_be_taken_before_the_engine_has_reported_a_token(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "***", "Tea.")
        [request] = await streaming.requests()
        assert not await streaming.stream.wait(0.0)
        report(request, 1)
        assert await streaming.stream.wait(0.0)
        assert [piece.index for piece in streaming.stream.take()] == [0, 1]
        assert not await streaming.stream.wait(0.0)
        await streaming.result()

    run(scenario)


def test_sentences_come_in_their_order_whichever_is_decoded_first(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "Tea.\n\nThe quick brown fox jumps.")
        second, first = await streaming.requests()
        report(second, 1000)
        assert streaming.stream.take() == []
        report(first, 1000)
        assert streaming.stream.take() == [TextDelta(0, "Tea.\n\nThe quick brown fox jumps.")]
        await streaming.result()

    run(scenario)


def test_texts_do_not_wait_for_each_other(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "Tea.", "The quick brown fox jumps.")
        second, _ = await streaming.requests()
        report(second, 1000)
        assert streaming.stream.take() == [TextDelta(1, "The quick brown fox jumps.")]
        await streaming.result()
        assert streaming.stream.take() == [TextDelta(0, "Tea.")]

    run(scenario)


def test_text_that_becomes_final_while_the_reader_is_busy_is_one_delta(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "The quick brown fox jumps.")
        [request] = await streaming.requests()
        for num_tokens in range(1, 1000):
            report(request, num_tokens)
        assert streaming.stream.take() == [TextDelta(0, "The quick brown fox jumps.")]
        await streaming.result()

    run(scenario)


def test_an_engine_that_tells_nothing_is_heard_in_the_end(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, *_TEXTS)
        result = await streaming.result()
        texts = {piece.index: piece.text for piece in streaming.stream.take()}
        assert [texts.get(index, "") for index in range(len(_TEXTS))] == [each.text for each in result.translations]

    run(scenario)


@pytest.mark.parametrize("seed", range(10))
def test_the_pieces_are_the_plain_answer_in_whatever_order_they_become_final(echo: EchoGenerator, seed: int) -> None:
    drawn = random.Random(seed)

    async def scenario() -> None:
        streaming = Streaming(echo, *_TEXTS)
        requests = await streaming.requests()
        texts = [""] * len(_TEXTS)
        told = {request.id: 0 for request in requests}
        for _ in range(300):
            request = drawn.choice(requests)
            told[request.id] += drawn.randint(0, 3)
            report(request, told[request.id])
            for piece in streaming.stream.take() if drawn.random() < 0.5 else []:
                assert piece.text
                texts[piece.index] += piece.text
        result = await streaming.result()
        for piece in streaming.stream.take():
            texts[piece.index] += piece.text
        assert texts == [each.text for each in result.translations]

    run(scenario)


@pytest.mark.parametrize("max_sentences", [1, 2, 5])
def test_a_reader_takes_a_long_answer_in_parts(echo: EchoGenerator, max_sentences: int) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, *_TEXTS, "Tea. Tea.\n" * 20)
        result = await streaming.result()
        texts = [""] * len(result.translations)
        num_takes = 0
        while streaming.stream.has_news:
            num_takes += 1
            for piece in streaming.stream.take(max_sentences):
                texts[piece.index] += piece.text
        assert texts == [each.text for each in result.translations]
        assert num_takes >= 40 // max_sentences

    run(scenario)


def test_text_that_changes_later_fails_the_stream(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "The quick brown fox.")
        [request] = await streaming.requests()
        report(request, 5)
        streaming.stream.take()
        assert request.on_progress is not None
        request.on_progress(request.source[3:-1].tolist(), False)
        with pytest.raises(EngineFailed, match="cannot be streamed"):
            streaming.stream.take()
        await streaming.result()

    run(scenario)
