"""Models that a set unloads: idle ones, and those whose memory another one needs."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from bundle.loading import Bundle
from server.operations.models import ModelSet
from server.operations.settings import Settings
from server.workers.on_demand_engine import OnDemandEngine
from tests.fakes.echo import EchoFor, EchoGenerator
from tests.fakes.event_loop import in_event_loop

MEGABYTE = 1_000_000


class _Clock:
    """Time that passes during a sleep. The twentieth sleep ends the test of a loop that never ends."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if len(self.slept) == 20:
            raise asyncio.CancelledError


class _Loader:
    """A loader of echo models that take 10 MB each."""

    def __init__(self, bundles: Sequence[Bundle], clock: _Clock) -> None:
        self._bundles = {Path(bundle.config.name): bundle for bundle in bundles}
        self._clock = clock
        self.num_models: list[int] = []

    def check(self, folder: Path) -> Bundle:
        return self._bundles[folder]

    def engine(self, bundle: Bundle, num_models: int, pool: None) -> OnDemandEngine:
        self.num_models.append(num_models)
        return self.on_demand(bundle, None)

    def on_demand(self, bundle: Bundle, opened: EchoGenerator | None) -> OnDemandEngine:
        return OnDemandEngine(bundle, lambda: EchoGenerator(bundle), 10 * MEGABYTE, opened, self._clock)


def _models(loader: _Loader, bundles: Sequence[Bundle], settings: Settings) -> tuple[ModelSet, list[OnDemandEngine]]:
    engines = [loader.on_demand(bundle, EchoGenerator(bundle)) for bundle in bundles]
    models = ModelSet(settings, loader, lambda _: None)
    models.open(engines)
    return models, engines


@pytest.fixture
def bundles(echo_for: EchoFor) -> list[Bundle]:
    return [echo_for(*pair).bundle for pair in (("en", "de"), ("de", "en"), ("en", "fr"))]


@pytest.mark.parametrize("limit", [2.0, 100.0])
@in_event_loop
async def test_a_model_is_unloaded_when_it_was_idle_for_long_enough(
    bundles: list[Bundle], limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock()
    models, engines = _models(_Loader(bundles, clock), bundles[:2], Settings(model_idle_seconds=limit))
    clock.now = limit - 0.5
    await engines[1].generate([])
    # Not `asyncio.sleep` itself, which other threads may call.
    monkeypatch.setattr("server.operations.models.asyncio", SimpleNamespace(sleep=clock.sleep))
    with pytest.raises(asyncio.CancelledError):
        await models.unload_idle()
    assert all(0 < each <= limit / 4 for each in clock.slept)
    assert [engine.is_loaded for engine in engines] == [False, limit == 100]


@in_event_loop
async def test_without_a_limit_no_model_is_unloaded_for_being_idle(bundles: list[Bundle]) -> None:
    models, _ = _models(_Loader(bundles, _Clock()), bundles, Settings())
    await asyncio.wait_for(models.unload_idle(), 60)


@in_event_loop
async def test_models_of_the_start_and_added_ones_share_the_memory(bundles: list[Bundle]) -> None:
    clock = _Clock()
    loader = _Loader(bundles, clock)
    models, engines = _models(loader, bundles[:2], Settings(memory_limit=20))
    for clock.now, engine in ((1, engines[1]), (2, engines[0])):
        await engine.generate([])
    await engines[1].unload()
    await engines[1].load()  # within the limit: nothing else is unloaded
    assert [engine.is_loaded for engine in engines] == [True, True]
    change = await models.put(Path("echo-en-fr"))
    assert (change.outcome, loader.num_models) == ("added", [3])
    assert [engine.is_loaded for engine in engines] == [True, False]
    await models.remove("echo-en-fr")
    await engines[1].load()
    assert [engine.is_loaded for engine in engines] == [True, True], "a removed model takes no memory"
