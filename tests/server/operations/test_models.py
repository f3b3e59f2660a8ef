"""Models of a server: how they are opened, changed while it runs, and unloaded."""

import asyncio
import math
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bundle.loading import Bundle, load_bundle, save_manifest
from bundle.manifest import MANIFEST_FILE, BundleError
from server.documents.input.limits import MEGABYTE
from server.interface.engine_client import EngineClient
from server.interface.errors import Draining, InvalidRequest, NotFound
from server.operations.cpu_count import usable_cpus
from server.operations.defaults import DEFAULT_MODEL
from server.operations.metrics import Metrics
from server.operations.models import ModelLoader, ModelSet, open_engines
from server.operations.settings import Settings
from server.text.language_detection import Detector
from server.translation.router import Router
from server.translation.service import TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest
from server.workers.on_demand_engine import OnDemandEngine
from server.workers.pool import EnginePool
from tests.end_to_end.servers import PATIENCE_SECONDS, ROOT, relabelled
from tests.fakes.echo import EchoFor, EchoGenerator
from tests.fakes.event_loop import in_event_loop, until


def _engine_threads() -> int:
    return sum(thread.name.startswith("engine-") for thread in threading.enumerate())


def test_models_beyond_the_limit_of_memory_are_not_loaded_at_the_start(tmp_path: Path) -> None:
    for target in ("de", "fr"):
        relabelled(tmp_path, "en", target)
    settings = Settings(model=[tmp_path], threads=1, max_rows=8)
    needed = ModelLoader(settings, Metrics()).num_bytes(load_bundle(tmp_path / "en-de"), 2)
    limit = math.ceil(1.5 * needed / MEGABYTE)
    opened = open_engines(settings.model_copy(update={"memory_limit": limit}), Metrics())
    try:
        engines = [engine for engine in opened if isinstance(engine, OnDemandEngine)]
        assert {engine.bundle.config.name: engine.is_loaded for engine in engines} == {"en-de": True, "en-fr": False}
    finally:
        for engine in opened:
            engine.close()


def test_a_bundle_that_cannot_be_served_is_named_and_the_others_are_closed(tmp_path: Path) -> None:
    good, bad = relabelled(tmp_path, "en", "de"), relabelled(tmp_path, "en", "fr")
    (bad / "decoder.onnx").unlink()
    before = _engine_threads()
    with pytest.raises(BundleError, match=rf"{bad} cannot be served: decoder\.onnx: missing"):
        open_engines(Settings(model=[good, bad], threads=1, max_rows=8), Metrics())
    assert _engine_threads() == before


def test_languages_that_cannot_be_detected_are_refused_before_anything_is_loaded() -> None:
    with pytest.raises(
        ValueError, match=r"`detect_languages` must be languages that can be detected: .*de, .*en.*Given: tlh"
    ):
        open_engines(Settings(detect_languages=["en", "tlh"]), Metrics())


def test_a_program_that_worker_processes_cannot_import_gets_an_error_with_the_remedy(tmp_path: Path) -> None:
    program = tmp_path / "unguarded.py"
    program.write_text(
        """
from bundle.loading import load_bundle
from server.workers.pool import EnginePool
from server.workers.pool import PoolOptions
from server.operations.defaults import DEFAULT_MODEL

EnginePool.open(load_bundle(DEFAULT_MODEL), PoolOptions(processes=True))
"""
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 1
    assert 'must start engines below `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]


def test_more_threads_than_processors_are_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for threads in (usable_cpus(), usable_cpus() + 1):
        with pytest.raises(BundleError):
            open_engines(Settings(model=[tmp_path / "none"], threads=threads), Metrics())
    [warning] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert (warning.threads, warning.processors) == (usable_cpus() + 1, usable_cpus())  # type: ignore[attr-defined]


def test_a_minimum_quality_that_has_no_effect_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bundle = load_bundle(DEFAULT_MODEL)
    ModelLoader(Settings(min_quality=0.5), Metrics()).check(bundle.path)
    assert not caplog.records
    shutil.copytree(bundle.path, tmp_path / "en-de")
    save_manifest(tmp_path / "en-de", bundle.config.model_copy(update={"quality": {}}))
    ModelLoader(Settings(), Metrics()).check(tmp_path / "en-de")
    assert not caplog.records
    ModelLoader(Settings(min_quality=0.5), Metrics()).check(tmp_path / "en-de")
    [warning] = caplog.records
    assert warning.message == "minimum quality without effect: model not calibrated"


class _Folders(ModelLoader):
    """A loader of echo models: folders by name, with the bundles that are "in" them."""

    def __init__(self) -> None:
        self.bundles: dict[Path, Bundle | Exception] = {}
        self.opened: list[EchoGenerator] = []
        self.error: Exception | None = None
        self.num_checks = 0
        self.may_open = threading.Event()
        self.may_open.set()

    def check(self, folder: Path) -> Bundle:
        self.num_checks += 1
        found = self.bundles.get(folder, BundleError(f"{folder} is not a folder"))
        if isinstance(found, Exception):
            raise found
        return found

    def engine(self, bundle: Bundle, num_models: int, pool: EnginePool | None) -> OnDemandEngine:
        def load() -> EchoGenerator:
            self.may_open.wait(60)
            self.opened.append(EchoGenerator(bundle, self.error))
            return self.opened[-1]

        return OnDemandEngine(bundle, load, 10)


class _Server:
    """A model set and the service that its routers reach."""

    def __init__(self, engines: list[EchoGenerator], folder: Path) -> None:
        settings = Settings(model=[folder])
        self.folders = _Folders()
        self.models = ModelSet(settings, self.folders, self._publish)
        self.service: TranslationService | None = None
        self.models.open(engines)

    def _publish(self, router: Router) -> None:
        detector = Detector(router.source_languages)
        if self.service is None:
            self.service = TranslationService(router, detector, Settings().limits)
        else:
            self.service.change_models(router, detector)

    async def translate(self, target: str = "de") -> TranslationOutcome:
        assert self.service is not None
        return await self.service.translate(TranslationRequest(("Tea.",), "", ""), "en", target)

    @property
    def served(self) -> list[EngineClient]:
        return list(self.models.engines)

    @property
    def names(self) -> list[str]:
        return [engine.bundle.config.name for engine in self.models.engines]


@pytest.fixture
def server(echo: EchoGenerator, tmp_path: Path) -> _Server:
    return _Server([echo], tmp_path)


def _newer(bundle: Bundle) -> Bundle:
    config = bundle.config.model_copy(update={"precision": "int8"})
    return replace(bundle, config=config)


def _closed(engine: EchoGenerator) -> bool:
    return engine.is_closed


@in_event_loop
async def test_a_replaced_model_finishes_its_requests_before_it_is_closed(server: _Server, echo: EchoGenerator) -> None:
    folder = Path("new")
    server.folders.bundles[folder] = _newer(echo.bundle)
    echo.gate = asyncio.Event()
    running = asyncio.create_task(server.translate())
    await echo.entered.wait()
    change = asyncio.create_task(server.models.put(folder))
    await until(lambda: server.served[0] is not echo)
    later = await server.translate()  # while the old model still works
    assert not _closed(echo)
    assert not change.done()
    echo.gate.set()
    await running
    done = await change
    assert (done.model, done.outcome) == ("echo-en-de", "replaced")
    assert set(done.seconds) == {"verify", "load", "drain"}
    assert _closed(echo)
    assert later.result.translations[0].text == "Tea."
    *probes, last = server.folders.opened[0].batches
    assert probes
    assert last[0].source.tolist() == echo.batches[0][0].source.tolist(), "the later request"


@in_event_loop
async def test_a_model_that_fails_its_first_sentence_is_closed_and_the_old_one_stays(
    server: _Server, echo: EchoGenerator
) -> None:
    server.folders.bundles[Path("new")] = _newer(echo.bundle)
    server.folders.error = InvalidRequest("the scores are NaN")
    with pytest.raises(InvalidRequest, match="cannot be served: the scores are NaN"):
        await server.models.put(Path("new"))
    assert server.folders.opened[0].is_closed
    assert server.models.engines == [echo]


@in_event_loop
async def test_models_are_added_and_removed_but_not_the_last(server: _Server, echo_for: EchoFor) -> None:
    server.folders.bundles[Path("fr")] = echo_for("en", "fr").bundle
    assert (await server.models.put(Path("fr"))).outcome == "added"
    assert (await server.translate("fr")).model == "echo-en-fr"
    assert (await server.models.put(Path("fr"))).outcome == "unchanged"
    assert (await server.models.remove("echo-en-de")).outcome == "removed"
    assert server.names == ["echo-en-fr"]
    with pytest.raises(InvalidRequest, match="is the only model"):
        await server.models.remove("echo-en-fr")
    with pytest.raises(NotFound, match="no model has the name nothing; the models are echo-en-fr"):
        await server.models.remove("nothing")


@in_event_loop
async def test_a_comparison_with_the_folders_adds_replaces_and_removes(
    tmp_path: Path, echo: EchoGenerator, echo_for: EchoFor
) -> None:
    server = _Server([echo, echo_for("en", "fr")], tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / MANIFEST_FILE).touch()
    server.folders.bundles = {
        tmp_path / "a": _newer(echo.bundle),
        tmp_path / "b": echo_for("de", "en").bundle,
        tmp_path / "c": BundleError("vocab.json: missing"),
    }
    changes = await server.models.reload()
    assert [(change.model, change.outcome) for change in changes] == [
        ("echo-en-de", "replaced"),
        ("echo-de-en", "added"),
        ("c", "failed"),
        ("echo-en-fr", "removed"),
    ]
    assert changes[2].error == "vocab.json: missing"
    assert server.names == ["echo-en-de", "echo-de-en"]


@in_event_loop
async def test_of_two_folders_with_one_model_the_later_one_is_served(tmp_path: Path, echo: EchoGenerator) -> None:
    """A comparison after `put` served the older bundle again, until it came to the newer one."""
    server = _Server([echo], tmp_path)
    older, newer = replace(echo.bundle, path=tmp_path / "a"), replace(_newer(echo.bundle), path=tmp_path / "put")
    server.folders.bundles = {older.path: older, newer.path: newer}
    for folder in server.folders.bundles:
        shutil.copytree(echo.bundle.path, folder)
        (folder / MANIFEST_FILE).touch()
    await server.models.put(older.path)
    await server.models.put(newer.path)
    num_opened = len(server.folders.opened)
    assert [change.outcome for change in await server.models.reload()] == ["unchanged"]
    server.folders.bundles[newer.path] = BundleError("decoder.onnx: truncated")
    assert [change.outcome for change in await server.models.reload()] == ["failed"]
    assert server.served[0].bundle == newer
    assert len(server.folders.opened) == num_opened
    await server.models.put(older.path)
    assert {change.outcome for change in await server.models.reload()} == {"failed", "unchanged"}
    assert server.served[0].bundle == older


@in_event_loop
async def test_comparisons_that_wait_together_are_made_once(tmp_path: Path, echo: EchoGenerator) -> None:
    (tmp_path / MANIFEST_FILE).touch()
    server = _Server([echo], tmp_path)
    server.folders.bundles[tmp_path] = replace(echo.bundle, path=tmp_path)
    first = asyncio.create_task(server.models.reload())
    await until(lambda: server.folders.num_checks > 0)
    others = [asyncio.create_task(server.models.reload()) for _ in range(100)]
    await asyncio.gather(first, *others)
    assert server.folders.num_checks == 2


@in_event_loop
async def test_after_the_end_has_begun_no_change_is_made(server: _Server, echo: EchoGenerator) -> None:
    """One that runs is undone if it can, and those that wait are rejected."""
    folder = Path("new")
    server.folders.bundles[folder] = _newer(echo.bundle)
    server.folders.may_open.clear()
    running = asyncio.create_task(server.models.put(folder))
    await until(lambda: server.folders.num_checks == 1)
    changes = [running, asyncio.create_task(server.models.remove("x")), asyncio.create_task(server.models.reload())]
    ending = asyncio.create_task(server.models.stop())
    await asyncio.sleep(0.01)
    assert not ending.done()
    server.folders.may_open.set()
    await ending
    for change in changes:
        with pytest.raises(Draining):
            await change
    assert server.models.engines == [echo]
    assert [engine.is_closed for engine in server.folders.opened] == [True]


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


class _Loader(ModelLoader):
    """A loader of echo models that take 10 MB each."""

    def __init__(self, bundles: Sequence[Bundle], clock: _Clock) -> None:
        self._bundles = {Path(bundle.config.name): bundle for bundle in bundles}
        self._clock = clock
        self.num_models: list[int] = []

    def check(self, folder: Path) -> Bundle:
        return self._bundles[folder]

    def engine(self, bundle: Bundle, num_models: int, pool: EnginePool | None) -> OnDemandEngine:
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
