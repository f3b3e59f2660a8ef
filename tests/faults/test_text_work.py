"""Texts that are all work and no words: time limits and cancellation hold in every stage of the text pipeline."""

import asyncio
import threading
from collections.abc import Iterator
from itertools import count

import pytest

from bundle.loading import Bundle
from server.interface.errors import DeadlineExceeded
from server.interface.interruption import checkpoint
from server.translation.execution import NO_DEADLINE, PROTECTED_TEXTS, ThreadRunner
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TextFormat, TranslationRequest
from tests.fakes.echo import make_bundle
from tests.server.text.identity import LETTERS, IdentityEngine

NUM_CHARACTERS = 20_000
PATIENCE_SECONDS = 60.0
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
