"""Deadlines of long texts: they apply in every stage, and no thread works beyond them."""

import asyncio
import threading

import pytest

from server.interface.errors import DeadlineExceeded
from server.translation.attempts import Attempts
from server.translation.execution import PROTECTED_TEXTS
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from tests.server.text.identity import Identity

TEXT = "<p>the dog {name}" * 200


def _request(seconds: float) -> TranslationRequest:
    return TranslationRequest((TEXT,), "en", "de", timeout_seconds=seconds, format="html")


@pytest.mark.parametrize("method", ["_first", "_restore"])
def test_no_more_sentences_are_processed_after_the_deadline(
    identity: Identity, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    now, num_seen = 0.0, 0
    plain = getattr(Attempts, method)

    def watched(*args: object) -> object:
        nonlocal now, num_seen
        num_seen += 1
        now = 2.0 if num_seen == 3 else now
        return plain(*args)

    monkeypatch.setattr(Attempts, method, watched)
    pipeline = Pipeline(identity.engine, TranslationLimits(), clock=lambda: now)
    with pytest.raises(DeadlineExceeded, match="within 1 seconds"):
        asyncio.run(pipeline.translate(_request(1.0)))
    assert num_seen == 3


def test_a_call_that_waits_for_a_busy_thread_ends_at_its_deadline(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, went_on = threading.Event(), threading.Event()

    def first(*_: object) -> tuple[()]:
        may_go_on.wait(60.0)
        may_go_on.set()  # only the first call waits
        went_on.set()
        return ()

    monkeypatch.setattr(Attempts, "_first", first)
    try:
        with pytest.raises(DeadlineExceeded, match=r"within 0\.2 seconds"):
            asyncio.run(identity.pipeline.translate(_request(0.2)))
        assert not went_on.is_set()
    finally:
        may_go_on.set()
        PROTECTED_TEXTS.submit(bool).result()
