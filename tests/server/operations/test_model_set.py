import asyncio
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from bundle.loading import Bundle
from bundle.manifest import MANIFEST_FILE, BundleError
from server.interface.engine_client import EngineClient
from server.interface.errors import Draining, InvalidRequest, NotFound
from server.operations.models import ModelSet
from server.operations.settings import Settings
from server.text.language_detection import Detector
from server.translation.router import Router
from server.translation.service import TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest
from server.workers.on_demand_engine import OnDemandEngine
from tests.fakes.echo import EchoFor, EchoGenerator
from tests.fakes.event_loop import in_event_loop, until


class _Folders:
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

    def engine(self, bundle: Bundle, num_models: int, pool: None) -> OnDemandEngine:
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
async def test_a_bundle_that_cannot_be_served_changes_nothing_and_the_error_has_the_reason(
    server: _Server, echo: EchoGenerator
) -> None:
    server.folders.bundles[Path("bad")] = BundleError("decoder.onnx: its SHA-256 differs")
    with pytest.raises(InvalidRequest, match=r"its SHA-256 differs; the models are unchanged"):
        await server.models.put(Path("bad"))
    assert server.names == ["echo-en-de"]
    await server.translate()
    assert not echo.is_closed


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
async def test_a_damaged_bundle_leaves_its_model_at_a_comparison(tmp_path: Path, echo: EchoGenerator) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / MANIFEST_FILE).touch()
    shutil.copytree(echo.bundle.path, folder, dirs_exist_ok=True)
    served = EchoGenerator(replace(echo.bundle, path=folder))
    server = _Server([served], tmp_path)
    server.folders.bundles = {folder: BundleError("decoder.onnx: truncated")}
    [change] = await server.models.reload()
    assert change.outcome == "failed"
    assert server.models.engines == [served]


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


@in_event_loop
async def test_an_idle_model_is_unloaded_and_answers_again(echo_bundle: Bundle, tmp_path: Path) -> None:
    server = _Server([EchoGenerator(echo_bundle)], tmp_path)
    server.folders.bundles[Path("new")] = _newer(echo_bundle)
    await server.models.put(Path("new"))
    [engine] = server.models.engines
    assert isinstance(engine, OnDemandEngine)
    assert await server.models.unload("echo-en-de")
    assert not engine.is_loaded
    await server.translate()
    assert engine.is_loaded
