"""Texts that are all work and no words: time limits and cancellation hold in every stage of the text pipeline."""

import asyncio
import threading
from collections.abc import Iterator
from itertools import count

import pytest

from benchmarks.service.echo import EchoEngine
from bundle.loading import Bundle, load_bundle
from server.interface.errors import DeadlineExceeded
from server.interface.interruption import checkpoint
from server.operations.defaults import DEFAULT_MODEL
from server.text.language_detection import Detector
from server.text.protection.masked_sentence import unchanged
from server.text.readers.units import Tag, Unit
from server.text.tokenizers.marian import MarianTokenizer
from server.translation.execution import NO_DEADLINE, PROTECTED_TEXTS, ThreadRunner
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.service import AUTO, TranslationService
from server.translation.types import TextFormat, TranslationRequest
from tests.fakes.echo import make_bundle
from tests.server.text.identity import LETTERS, IdentityEngine

NUM_CHARACTERS = 20_000
PATIENCE_SECONDS = 10.0
ROWS_OF_SYMBOLS = {
    "flags": "\U0001f1e9\U0001f1ea",
    "half flags": "\U0001f1e9",
    "joined emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "skin tones": "\U0001f44d\U0001f3fd",
    "objects": "\ufffc",
    "private use": "\ue000",
    "bidi marks": "\u202e",
    "dashes": "-",
    "joiners": "\u200d",
}
WORK: dict[str, tuple[TextFormat, str]] = {
    "words": ("text", "the dog. "),
    "words and flags": ("text", "dog \U0001f1e9\U0001f1ea "),
    "combining marks": ("text", "a\u0301\u0301\u0301 "),
    "joined letters": ("text", "a\u200d "),
    "lines": ("text", "dog\n"),
    "tags": ("html", "<b>dog</b> "),
    "open tags": ("html", "<b>dog "),
    "blocks": ("html", "<p>dog"),
    "references": ("html", "&#300; "),
    "elements": ("xml", "<p>dog</p>"),
    "empty elements": ("xml", "<p/>"),
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return make_bundle(tmp_path_factory.mktemp("letters"), sentences=LETTERS)


def _row(piece: str) -> str:
    return piece * (NUM_CHARACTERS // len(piece))


def _clock() -> "Iterator[float]":
    """Time that passes with every look at it, so that a time limit counts the places that observe it."""
    return (number / 100 for number in count())


@pytest.mark.parametrize("name", WORK)
def test_a_time_limit_ends_the_work_on_a_text(bundle: Bundle, name: str) -> None:
    format_, piece = WORK[name]
    clock = _clock()
    engine = IdentityEngine(bundle)
    pipeline = Pipeline(engine, TranslationLimits(), clock=lambda: next(clock))
    request = TranslationRequest((_row(piece),), "en", "de", format=format_, timeout_seconds=1.0)
    with pytest.raises(DeadlineExceeded):
        asyncio.run(pipeline.translate(request))
    assert not engine.batches


@pytest.mark.parametrize("name", ROWS_OF_SYMBOLS)
def test_symbols_are_neither_divided_nor_tokenized(bundle: Bundle, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        pytest.fail("a text without a letter or a digit was tokenized")

    engine = IdentityEngine(bundle)
    pipeline = Pipeline(engine, TranslationLimits())
    for method in ("encode", "encode_all", "count_tokens"):
        monkeypatch.setattr(MarianTokenizer, method, never)
    text = _row(ROWS_OF_SYMBOLS[name])
    result = asyncio.run(pipeline.translate(TranslationRequest((text,), "en", "de")))
    assert result.translations[0].text == text
    assert not engine.batches


def test_a_long_part_that_gets_a_capital_is_still_short_enough() -> None:
    """The capital took a token that nothing had counted, and a document with such a part was rejected as a whole."""
    pipeline = Pipeline(EchoEngine(load_bundle(DEFAULT_MODEL)), TranslationLimits())
    request = TranslationRequest(("word" * 40 + ",\u00e9" + ", " * 150 + "a",), "en", "de")
    assert "word" in asyncio.run(pipeline.translate(request)).translations[0].text


def test_a_time_limit_ends_language_detection(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _clock()
    monkeypatch.setattr("server.translation.service.time.monotonic", lambda: next(clock))
    limits = TranslationLimits()
    service = TranslationService(Router([Pipeline(IdentityEngine(bundle), limits)]), Detector(["en"]), limits)
    request = TranslationRequest((_row("<b>dog</b> "),), "", "", format="html", timeout_seconds=1.0)
    with pytest.raises(DeadlineExceeded):
        asyncio.run(service.translate(request, AUTO, "de"))


def test_work_in_a_thread_ends_when_its_call_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    has_begun, has_ended = threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        try:
            while True:
                checkpoint()
        finally:
            has_ended.set()

    async def cancelled() -> None:
        task = asyncio.create_task(ThreadRunner(PROTECTED_TEXTS, NO_DEADLINE)(work))
        await asyncio.to_thread(has_begun.wait, PATIENCE_SECONDS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert has_ended.wait(PATIENCE_SECONDS)
    NO_DEADLINE.check()


def test_the_words_of_a_long_unchanged_text_take_little_memory() -> None:
    text = "!" * NUM_CHARACTERS
    tag = Tag(0, len(text), "<b>", "</b>", -1)
    restored = unchanged(Unit(text, text, (tag,), (), str), (0, len(text)))
    assert restored.block is not None
    links = restored.block.links
    assert links.shape == (NUM_CHARACTERS, NUM_CHARACTERS)
    assert links[5, 5] == links[-1, -1] == 1
    assert links[5].sum() == links[:, 7].sum() == 1
    owner = links
    while owner.base is not None:
        owner = owner.base
    assert owner.nbytes < 10 * NUM_CHARACTERS
