import asyncio
from collections.abc import Sequence

import pytest

from server.interface.errors import Draining, EngineFailed, InvalidRequest
from server.interface.request import Completion, Request
from server.workers.stepped_engine import SteppedEngine
from tests.fakes.engine import FakeEngine, FakeRunner, fake_bundle, random_table, request
from tests.fakes.sentence_params import sentence_params

SOURCES = [[3 + first, 4, 5 + first, 0] for first in range(5)]


def _engine(max_rows: int = 16) -> tuple[SteppedEngine, FakeRunner]:
    runner = FakeRunner(random_table(seed=3, vocab=12, end_bias=-1.0), max_rows)
    return SteppedEngine(fake_bundle(12), runner, max_admitted_tokens=8), runner


async def _stepped(engine: SteppedEngine, task: "asyncio.Task[list[Completion]]") -> list[Completion]:
    for _ in range(1000):
        await asyncio.sleep(0)
        if task.done():
            return await task
        engine.step()
    pytest.fail("the requests did not end")


def _tokens(completions: Sequence[Completion]) -> list[list[int]]:
    return [completion.hypotheses[0].token_ids for completion in completions]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_stepped_engine_gives_the_answers_of_an_engine_with_a_scheduler(beam_size: int) -> None:
    params = sentence_params(beam_size=beam_size, max_new_tokens=16)

    async def scenario() -> list[Completion]:
        engine, _ = _engine()
        return await _stepped(engine, asyncio.create_task(engine.generate([request(each, params) for each in SOURCES])))

    alone = FakeEngine(random_table(seed=3, vocab=12, end_bias=-1.0)).run([request(each, params) for each in SOURCES])
    assert _tokens(asyncio.run(scenario())) == _tokens(alone)


def test_an_admission_has_the_tokens_that_it_may_have() -> None:
    async def scenario() -> list[list[tuple[int, ...]]]:
        engine, runner = _engine()
        await _stepped(engine, asyncio.create_task(engine.generate([request(each) for each in SOURCES])))
        return runner.encoded[1:]  # the first one warms up

    assert [len(run) for run in asyncio.run(scenario())] == [2, 2, 1]


def test_further_rounds_of_a_call_are_encoded_first() -> None:
    async def scenario() -> list[int]:
        engine, runner = _engine()
        calls = [[request(each) for each in SOURCES[:3]], [request(each) for each in SOURCES[3:]]]
        for each in calls[1]:
            each.accepted_earlier = True
        await _stepped(engine, asyncio.create_task(_all(engine, calls)))
        return [source[0] - 3 for run in runner.encoded[1:] for source in run]

    async def _all(engine: SteppedEngine, calls: list[list[Request]]) -> list[Completion]:
        return [each for part in await asyncio.gather(*map(engine.generate, calls)) for each in part]

    assert asyncio.run(scenario()) == [3, 4, 0, 1, 2]


def test_a_cancelled_call_frees_its_rows() -> None:
    async def scenario() -> None:
        engine, _ = _engine()
        task = asyncio.create_task(engine.generate([request(each) for each in SOURCES]))
        await asyncio.sleep(0)
        engine.step()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        engine.step()
        again = asyncio.create_task(engine.generate([request(SOURCES[0])]))
        assert (await _stepped(engine, again))[0].hypotheses
        assert not engine.has_work

    asyncio.run(scenario())


def test_the_error_of_a_step_is_raised_to_the_calls_that_it_ended() -> None:
    async def scenario() -> None:
        engine, runner = _engine()
        runner.decode_error = ValueError("broken device")
        with pytest.raises(EngineFailed, match="ValueError"):
            await _stepped(engine, asyncio.create_task(engine.generate([request(SOURCES[0])])))
        assert not engine.has_work

    asyncio.run(scenario())


def test_a_closed_engine_rejects_requests() -> None:
    async def scenario() -> None:
        engine, _ = _engine()
        engine.close()
        assert await engine.drain(0.0)
        with pytest.raises(Draining):
            await engine.generate([request(SOURCES[0])])

    asyncio.run(scenario())


def test_tokens_outside_the_vocabulary_are_rejected() -> None:
    async def scenario() -> None:
        engine, _ = _engine()
        with pytest.raises(InvalidRequest, match=r"tokens of `source` must be from 0 to 11 .* Given: 12"):
            await engine.generate([request(SOURCES[0]), request([12, 0])])
        assert not engine.has_work

    asyncio.run(scenario())
