import asyncio
import time

import numpy as np
import pytest

from bundle.loading import Bundle
from bundle.manifest import BundleError
from server.interface.errors import Draining, EngineFailed, QueueFull
from server.interface.request import FinishReason, Request, SentenceParams, Timings
from server.workers.on_demand_engine import MemoryBudget, OnDemandEngine
from tests.fakes.echo import EchoFor, EchoGenerator
from tests.fakes.event_loop import in_event_loop, until


class _Models:
    """Opens echo engines, and keeps them for the test."""

    def __init__(self, bundle: Bundle, gate: asyncio.Event | None = None) -> None:
        self.bundle = bundle
        self.opened: list[EchoGenerator] = []
        self.error: Exception | None = None
        self.gate = gate

    def engine(self, num_bytes: int = 10) -> OnDemandEngine:
        return OnDemandEngine(self.bundle, self._open, num_bytes)

    def _open(self) -> EchoGenerator:
        if self.error is not None:
            raise self.error
        self.opened.append(EchoGenerator(self.bundle, gate=self.gate))
        return self.opened[-1]


def _request(deadline: float | None = None) -> Request:
    return Request(np.array([5, 0], np.int32), SentenceParams(max_new_tokens=4), Timings(0.0), deadline=deadline)


@in_event_loop
async def test_a_model_is_loaded_once_for_requests_at_the_same_time(echo_bundle: Bundle) -> None:
    models = _Models(echo_bundle)
    engine = models.engine()
    assert not engine.is_loaded
    assert engine.status().has_engine, "the server is ready: the next request loads the model"
    results = await asyncio.gather(*(engine.generate([_request()]) for _ in range(5)))
    assert [len(completions) for completions in results] == [1] * 5
    assert len(models.opened) == 1
    assert engine.is_loaded


@in_event_loop
async def test_an_unloaded_model_is_loaded_again_by_its_next_request(echo_bundle: Bundle) -> None:
    models = _Models(echo_bundle)
    engine = models.engine()
    await engine.generate([_request()])
    assert await engine.unload()
    assert models.opened[0].is_closed
    assert not engine.is_loaded
    [completion] = await engine.generate([_request()])
    assert completion.finish_reason == FinishReason.STOP
    assert len(models.opened) == 2


@in_event_loop
async def test_a_model_in_use_is_not_unloaded(echo_bundle: Bundle) -> None:
    models = _Models(echo_bundle, gate=asyncio.Event())
    engine = models.engine()
    call = asyncio.create_task(engine.generate([_request()]))
    await until(lambda: bool(models.opened))
    await models.opened[0].entered.wait()
    assert not await engine.unload()
    assert engine.idle_seconds == 0
    assert models.gate is not None
    models.gate.set()
    await call
    assert await engine.unload()


@in_event_loop
async def test_a_request_that_expires_while_its_model_loads_has_no_answer(echo_bundle: Bundle) -> None:
    models = _Models(echo_bundle)
    [completion] = await models.engine().generate([_request(deadline=time.monotonic() - 1)])
    assert completion.finish_reason == FinishReason.DEADLINE


@in_event_loop
async def test_a_model_that_cannot_be_loaded_fails_its_request_and_not_the_next(echo_bundle: Bundle) -> None:
    models = _Models(echo_bundle)
    engine = models.engine()
    models.error = BundleError("decoder.onnx: missing")
    with pytest.raises(EngineFailed, match=r"echo-en-de could not be loaded: decoder\.onnx: missing"):
        await engine.generate([_request()])
    models.error = None
    assert len(await engine.generate([_request()])) == 1


@in_event_loop
async def test_a_removed_model_loads_no_more(echo_bundle: Bundle) -> None:
    engine = _Models(echo_bundle).engine()
    await engine.drain(1)
    with pytest.raises(Draining):
        await engine.generate([_request()])


@in_event_loop
async def test_the_least_recently_used_idle_model_makes_room(echo_for: EchoFor) -> None:
    budget = MemoryBudget(25)
    models = [_Models(echo_for(*pair).bundle) for pair in (("en", "de"), ("en", "fr"), ("de", "en"))]
    engines = [each.engine(num_bytes=10) for each in models]
    for engine in engines:
        budget.add(engine)
    await engines[0].generate([_request()])
    await engines[1].generate([_request()])
    await engines[0].generate([_request()])
    assert budget.used_bytes == 20
    await engines[2].generate([_request()])
    assert [engine.is_loaded for engine in engines] == [True, False, True]
    assert budget.used_bytes == 20


@in_event_loop
async def test_models_in_use_leave_no_room_and_the_error_has_the_numbers(echo_for: EchoFor) -> None:
    budget = MemoryBudget(15_000_000)
    first = _Models(echo_for("en", "de").bundle, gate=asyncio.Event())
    busy, other = first.engine(10_000_000), _Models(echo_for("en", "fr").bundle).engine(10_000_000)
    budget.add(busy)
    budget.add(other)
    call = asyncio.create_task(busy.generate([_request()]))
    await until(lambda: bool(first.opened))
    with pytest.raises(QueueFull, match="it needs 10 MB of `memory_limit` 15 MB, and models in use have 10"):
        await other.generate([_request()])
    assert first.gate is not None
    first.gate.set()
    await call
    assert len(await other.generate([_request()])) == 1
