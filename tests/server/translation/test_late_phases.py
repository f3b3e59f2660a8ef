import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from server.interface.errors import DeadlineExceeded
from server.interface.request import Completion, FinishReason, Request
from server.translation.execution import Deadline
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.pivot import PivotPipeline
from server.translation.submission import Submission
from server.translation.types import Phases, TranslationRequest
from tests.fakes.cached_echo import ask
from tests.fakes.echo import EchoFor, EchoGenerator
from tests.fakes.engine import FakeClock

LIMIT_SECONDS = 10.0


@dataclass
class _Late(EchoGenerator):
    """Engine that takes until the deadline. `waited` are seconds in the queue; None for a sentence that stays there."""

    clock: FakeClock = field(default_factory=FakeClock)
    waited: Sequence[float | None] = ()

    async def generate(self, requests: Sequence[Request]) -> list[Completion]:
        for request, seconds in zip(requests, self.waited, strict=True):
            request.timings.admitted = 0.0 if seconds is None else request.timings.arrived + seconds
        self.clock.now = 100.0 + LIMIT_SECONDS
        if self.gate is not None:
            await self.gate.wait()
        return [Completion(request, [], FinishReason.DEADLINE) for request in requests]


def _submission(engine: _Late) -> Submission:
    arrived = engine.clock.now
    engine.clock.now += 1.0
    return Submission(engine, Deadline.of(arrived + LIMIT_SECONDS, arrived, engine.clock), arrived)


@pytest.mark.parametrize(
    ("waited", "queue", "decode"), [((None, None), 9.0, 0.0), ((4.0, None), 4.0, 5.0), ((4.0, 2.0), 2.0, 7.0)]
)
def test_an_expired_call_has_the_times_until_its_deadline(
    echo: EchoGenerator, waited: Sequence[float | None], queue: float, decode: float
) -> None:
    engine = _Late(echo.bundle, waited=waited)
    with pytest.raises(DeadlineExceeded, match="10 seconds") as caught:
        asyncio.run(_submission(engine).submit([ask(5), ask(6)]))
    assert caught.value.phase_seconds == {"tokenize": 1.0, "queue": queue, "encode": 0.0, "decode": decode}


def test_a_call_that_its_deadline_cancels_has_these_times_too(echo: EchoGenerator) -> None:
    async def scenario() -> None:
        engine = _Late(echo.bundle, gate=asyncio.Event(), waited=(4.0,))
        deadline = Deadline.of(110.0, 100.0, engine.clock)
        engine.clock.now = 109.99  # the interruption comes after 10 ms
        async with deadline.interrupts():
            submission = Submission(engine, deadline, 100.0)
            await submission.submit([ask(5)])

    with pytest.raises(DeadlineExceeded) as caught:
        asyncio.run(scenario())
    assert caught.value.phase_seconds["tokenize"] == pytest.approx(9.99)


def test_rounds_add_up_and_a_deadline_before_the_first_is_time_of_the_text() -> None:
    deadline = Deadline.of(110.0, 100.0, FakeClock())
    assert deadline.error.phase_seconds == {"tokenize": 10.0, "queue": 0.0, "encode": 0.0, "decode": 0.0}
    for phases in ((1.0, 2.0, 3.0, 4.0, 5.0), (0.5, 0.5, 0.5, 0.5, 0.5)):
        deadline.add_round(Phases(*phases))
    assert deadline.for_one_task().error.phase_seconds == {"tokenize": 1.5, "queue": 2.5, "encode": 3.5, "decode": 4.5}


def test_a_sentence_from_the_cache_is_no_beginning_of_decoding(echo: EchoGenerator) -> None:
    engine = _Late(echo.bundle, waited=(0.0, 3.0))
    cached = ask(5)
    cached.timings.first_token = 100.0
    with pytest.raises(DeadlineExceeded) as caught:
        asyncio.run(_submission(engine).submit([cached, ask(6)]))
    assert (caught.value.phase_seconds["queue"], caught.value.phase_seconds["decode"]) == (3.0, 6.0)


def test_the_second_step_through_a_pivot_adds_the_first(echo: EchoGenerator, echo_for: EchoFor) -> None:
    second = echo_for("de", "fr")
    second.finish_reason = FinishReason.DEADLINE
    limits = TranslationLimits()
    pivot = PivotPipeline(Pipeline(echo, limits), Pipeline(second, limits), ("de", "de"))
    with pytest.raises(DeadlineExceeded) as caught:
        asyncio.run(pivot.translate(TranslationRequest(("Good morning.",), "en", "fr", timeout_seconds=5.0)))
    assert caught.value.phase_seconds["queue"] >= 0.001, "of the first step"
    assert caught.value.phase_seconds["encode"] == pytest.approx(0.002)
