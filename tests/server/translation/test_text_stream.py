"""Texts as they become final: pieces in order, and all together exactly the plain answer."""

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
    """A translation under way, whose engine tells what a test wants it to."""

    def __init__(self, echo: EchoGenerator, *texts: str) -> None:
        self.echo = echo
        echo.gate = asyncio.Event()
        self.feed = TextStream()
        asked = TranslationRequest(texts, "en", "de")
        self.task = asyncio.create_task(Pipeline(echo, TranslationLimits()).translate(asked, self.feed))

    async def requests(self) -> list[Request]:
        """Those the engine got, in the order of their arrival there: longest first."""
        await self.echo.entered.wait()
        return self.echo.batches[-1]

    async def result(self) -> TranslationResult:
        """What comes when the engine has answered."""
        assert self.echo.gate is not None
        self.echo.gate.set()
        return await self.task


def tell(request: Request, num_tokens: int) -> None:
    """So many tokens of the echo are final; all of them are all there are."""
    tokens = request.source[:-1].tolist()
    assert request.on_progress is not None
    request.on_progress(tokens[:num_tokens], num_tokens >= len(tokens))


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20.0))


def test_a_piece_is_what_became_final_since_the_last(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, " The dog.\n")
        [request] = await streaming.requests()
        assert not await streaming.feed.wait(0.0)
        texts = []
        for num_tokens in range(1, len(request.source)):
            tell(request, num_tokens)
            texts += [piece.text for piece in streaming.feed.take()]
        assert "".join(texts) == " The dog.\n"
        assert len(texts) > 2
        assert texts[0].startswith(" T")
        assert [text.text for text in (await streaming.result()).translations] == [" The dog.\n"]
        assert streaming.feed.take() == []

    run(scenario)


def test_nothing_can_be_read_before_the_engine_has_got_on(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "***", "Tea.")
        [request] = await streaming.requests()
        assert not await streaming.feed.wait(0.0)
        tell(request, 1)
        assert await streaming.feed.wait(0.0)
        assert [piece.index for piece in streaming.feed.take()] == [0, 1]
        assert not await streaming.feed.wait(0.0)
        await streaming.result()

    run(scenario)


def test_sentences_come_in_their_order_whichever_is_decoded_first(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "Tea.\n\nThe quick brown fox jumps.")
        second, first = await streaming.requests()
        tell(second, 1000)
        assert streaming.feed.take() == []
        tell(first, 1000)
        assert streaming.feed.take() == [TextDelta(0, "Tea.\n\nThe quick brown fox jumps.")]
        await streaming.result()

    run(scenario)


def test_texts_do_not_wait_for_each_other(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "Tea.", "The quick brown fox jumps.")
        second, _ = await streaming.requests()
        tell(second, 1000)
        assert streaming.feed.take() == [TextDelta(1, "The quick brown fox jumps.")]
        await streaming.result()
        assert streaming.feed.take() == [TextDelta(0, "Tea.")]

    run(scenario)


def test_what_becomes_final_while_nobody_reads_is_one_piece(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "The quick brown fox jumps.")
        [request] = await streaming.requests()
        for num_tokens in range(1, 1000):
            tell(request, num_tokens)
        assert streaming.feed.take() == [TextDelta(0, "The quick brown fox jumps.")]
        await streaming.result()

    run(scenario)


def test_an_engine_that_tells_nothing_is_heard_in_the_end(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, *_TEXTS)
        result = await streaming.result()
        texts = {piece.index: piece.text for piece in streaming.feed.take()}
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
            tell(request, told[request.id])
            for piece in streaming.feed.take() if drawn.random() < 0.5 else []:
                assert piece.text
                texts[piece.index] += piece.text
        result = await streaming.result()
        for piece in streaming.feed.take():
            texts[piece.index] += piece.text
        assert texts == [each.text for each in result.translations]

    run(scenario)


def test_text_that_would_have_to_be_taken_back_fails_the_stream(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        streaming = Streaming(echo, "The quick brown fox.")
        [request] = await streaming.requests()
        tell(request, 5)
        streaming.feed.take()
        assert request.on_progress is not None
        request.on_progress(request.source[3:-1].tolist(), False)
        with pytest.raises(EngineFailed, match="cannot be streamed"):
            streaming.feed.take()
        await streaming.result()

    run(scenario)
