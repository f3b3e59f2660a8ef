"""Deadlines of long protected texts: they apply in every stage, and no thread works beyond them."""

import asyncio
import threading

import pytest

from server.interface.errors import DeadlineExceeded
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.protection_strategies import Escalation
from server.translation.restoration import Restorer
from server.translation.types import TranslationRequest
from server.translation.worker_threads import PROTECTED_TEXTS
from tests.server.text.identity import Identity

TEXT = "the dog {name}\n" * 200


@pytest.mark.parametrize(("stage", "method"), [(Escalation, "protect"), (Restorer, "_is_restored")])
def test_no_more_sentences_are_processed_after_the_deadline(
    identity: Identity, monkeypatch: pytest.MonkeyPatch, stage: type, method: str
) -> None:
    now, num_seen = 0.0, 0
    plain = getattr(stage, method)

    def watched(*args: object) -> object:
        nonlocal now, num_seen
        num_seen += 1
        now = 2.0 if num_seen == 3 else now
        return plain(*args)

    monkeypatch.setattr(stage, method, watched)
    pipeline = Pipeline(identity.engine, TranslationLimits(), clock=lambda: now)
    with pytest.raises(DeadlineExceeded, match="within 1 seconds"):
        asyncio.run(pipeline.translate(TranslationRequest((TEXT,), "en", "de", timeout_seconds=1.0)))
    assert num_seen == 3


def test_a_call_that_waits_for_a_busy_thread_ends_at_its_deadline(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, went_on = threading.Event(), threading.Event()

    def protect(*_: object) -> None:
        may_go_on.wait(5.0)
        may_go_on.set()  # only the first call waits
        went_on.set()

    monkeypatch.setattr(Escalation, "protect", protect)
    request = TranslationRequest((TEXT,), "en", "de", timeout_seconds=0.2)
    try:
        with pytest.raises(DeadlineExceeded, match=r"within 0\.2 seconds"):
            asyncio.run(identity.pipeline.translate(request))
        assert not went_on.is_set()
    finally:
        may_go_on.set()
        PROTECTED_TEXTS.submit(bool).result()
