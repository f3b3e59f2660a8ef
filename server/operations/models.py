"""Models of a server: loaded and warmed up, loaded again on demand; added, replaced and removed while requests run."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bundle.loading import Bundle, check_unchanged, load_bundle
from bundle.manifest import BundleError
from bundle.tensors import WEIGHTS_SUFFIX
from server.documents.input.limits import MEGABYTE
from server.interface.decoding_options import DecodingOptions
from server.interface.engine_client import EngineClient
from server.interface.errors import Draining, InvalidRequest, KvasirError, NotFound
from server.operations.bundle_search import bundle_folders
from server.operations.cpu_count import usable_cpus
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.text.language_detection import Detector
from server.text.language_identifier import load_identifier
from server.text.tokenizers.registry import open_tokenizer
from server.translation.glossaries import GlossaryStore
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.types import TranslationRequest
from server.translation.whole_texts import GenerationRequest
from server.workers.cache import CachedEngineClient
from server.workers.on_demand_engine import MemoryBudget, OnDemandEngine
from server.workers.pool import EnginePool, PoolOptions
from server.workers.thread_lending import ThreadLending

_log = logging.getLogger("kvasir")

# The event loop goes first: it rejects requests and answers probes while all engines run.
_ENGINE_NICENESS = 10

# Each engine process has a copy of its model, except weights that are mapped into memory; engine threads share one.
_MAX_COPIED_BYTES = 256_000_000

# Memory of a loaded model without long requests: 63 MB for a process with files of 16 MB.
_LOADED_RATIO = 1.3
_PROCESS_BYTES = 45_000_000

_LENDING = ThreadLending()  # the processors belong to all models of the process


def open_engines(
    settings: Settings, observer: Metrics, meanwhile: Callable[[], object] = lambda: None
) -> list[EngineClient]:
    """Return the engines of all models of `settings`, each behind its cache, loaded and warm.

    `meanwhile` is called once while processes load.

    With a memory limit, models that do not fit are loaded by their first request. Raises `BundleError`, with file and
    reason, if a bundle cannot be served; engines opened before are closed. Raises ValueError for languages that cannot
    be detected, for paths that are not writable, for a missing device, and for a model above the memory limit.
    """
    _check_detection(settings.detect_languages)
    _check_documents_folder(settings.documents_folder)
    # Check that the file is usable; the application opens it again.
    GlossaryStore(settings.glossary_file, folder=settings.documents_folder).close()
    if settings.threads > (processors := usable_cpus()):
        # Threads wait for each other within every step.
        _log.warning(
            "more threads than processors; requests take longer",
            extra={"threads": settings.threads, "processors": processors},
        )
    folders = bundle_folders(settings.model)
    loader = ModelLoader(settings, observer)
    bundles: list[Bundle] = []
    launched: dict[int, EnginePool] = {}  # by the index of the bundle
    used_bytes = 0
    try:
        # Launch all before waiting for the first: processes load their graphs in parallel.
        for index, folder in enumerate(folders):
            bundles.append(loader.check(folder))
            used_bytes += (num_bytes := loader.num_bytes(bundles[index], len(folders)))
            if settings.memory_limit is None or used_bytes <= settings.memory_limit * MEGABYTE:
                launched[index] = loader.launch(bundles[index], len(folders))
            else:
                used_bytes -= num_bytes
        meanwhile()
        for pool in launched.values():
            loader.warm_up(pool)
    except BaseException:
        for pool in launched.values():
            pool.close()
        raise
    return [loader.engine(bundle, len(folders), launched.get(index)) for index, bundle in enumerate(bundles)]


class ModelLoader:
    """Loads single bundles with the settings of a server. Methods block, and may run in any thread.

    `num_models` is the number of models that share the threads.
    """

    def __init__(self, settings: Settings, observer: Metrics) -> None:
        self._settings = settings
        self._observer = observer

    def check(self, folder: Path) -> Bundle:
        """Return the bundle in `folder`. Raises `BundleError` if a file is damaged, and for a model above the limit."""
        bundle = load_bundle(folder)
        open_tokenizer(bundle)  # a damaged one is reported before anything is served
        limit = self._settings.memory_limit
        if limit is not None and (needed := self.num_bytes(bundle, 1)) > limit * MEGABYTE:
            raise BundleError(
                f"`memory_limit` must be at least {-(-needed // MEGABYTE)} megabytes for {folder}. Given: {limit}"
            )
        if self._settings.min_quality is not None and bundle.config.translates and not bundle.config.quality:
            _log.warning("minimum quality without effect: model not calibrated", extra={"model": bundle.config.name})
        return bundle

    def open(self, bundle: Bundle, num_models: int) -> OnDemandEngine:
        """Return the engine of a bundle, loaded and warm. Raises `BundleError`."""
        pool = self.launch(bundle, num_models)
        self.warm_up(pool)
        return self.engine(bundle, num_models, pool)

    def engine(self, bundle: Bundle, num_models: int, pool: EnginePool | None) -> OnDemandEngine:
        """Return the engine of a bundle. Without a pool, its first request loads it."""

        def load() -> EngineClient:
            check_unchanged(bundle)
            pool = self.launch(bundle, num_models)
            self.warm_up(pool)
            return self._cached(pool)

        opened = None if pool is None else self._cached(pool)
        return OnDemandEngine(bundle, load, self.num_bytes(bundle, num_models), opened)

    def launch(self, bundle: Bundle, num_models: int) -> EnginePool:
        """Load the graphs of a bundle, or start the processes that load them."""
        return EnginePool.launch(bundle, self._options(bundle, num_models))

    def warm_up(self, pool: EnginePool) -> None:
        """Let every engine decode a first sentence, then start them. Raises `BundleError`, and closes the pool."""
        config, options = pool.bundle.config, pool.options
        try:
            pool.warm_up_and_start()
        except KvasirError as error:
            message = f"{pool.bundle.path}: the warm-up sentence failed: {error}"
            raise BundleError(message) from error
        _log.info(
            "model loaded",
            extra={
                "model": config.name,
                "source_languages": list(config.source_languages),
                "target_languages": list(config.target_languages),
                "precision": config.precision,
                "device": options.device,
                "replicas": options.num_own_replicas,
                "lent_replicas": options.replicas - options.num_own_replicas,
                "threads_per_replica": options.threads_per_replica,
                "processes": pool.has_processes,
            },
        )

    def num_bytes(self, bundle: Bundle, num_models: int) -> int:
        """Estimate the memory of a loaded model: weights, and what each of its processes has besides."""
        options = self._options(bundle, num_models)
        copied, mapped = _copied_and_mapped_bytes(bundle)
        copied = round(copied * _LOADED_RATIO)
        if not options.processes:
            return mapped + copied
        return mapped + options.replicas * (copied + _PROCESS_BYTES)

    def _options(self, bundle: Bundle, num_models: int) -> PoolOptions:
        settings = self._settings
        replicas, threads_per_replica = settings.shares(num_models)
        num_lent = settings.num_lent_replicas(num_models)
        processes = settings.engine_processes
        if processes is None:
            processes = settings.device == "cpu" and _copied_and_mapped_bytes(bundle)[0] < _MAX_COPIED_BYTES
        return PoolOptions(
            replicas=replicas + num_lent,
            threads_per_replica=threads_per_replica,
            max_rows=settings.max_rows,
            max_waiting=settings.max_waiting_requests,
            max_encoder_tokens=settings.max_encoder_tokens,
            device=settings.device,
            max_queue_seconds=settings.max_queue_seconds,
            niceness=_ENGINE_NICENESS,
            heartbeat_limit_seconds=settings.heartbeat_limit_seconds,
            observe=self._observer,
            processes=processes,
            lending=_LENDING if num_lent else None,
            num_lent=num_lent,
        )

    def _cached(self, pool: EnginePool) -> CachedEngineClient:
        cache_bytes = self._settings.cache_megabytes * MEGABYTE
        return CachedEngineClient(pool, self._settings.cache_sentences, self._observer, cache_bytes)


def _check_detection(languages: Sequence[str]) -> None:
    if unknown := Detector(languages).unknown:
        known = ", ".join(sorted(load_identifier().labels))
        raise ValueError(
            f"`detect_languages` must be languages that can be detected: {known}. Given: {', '.join(unknown)}"
        )


def _check_documents_folder(folder: Path | None) -> None:
    if folder is not None and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise ValueError(f"`documents_folder` must be a writable folder; create it or set another. Given: {folder}")


def _copied_and_mapped_bytes(bundle: Bundle) -> tuple[int, int]:
    """Return the sizes of files that each process copies, and of weights that all processes share.

    ONNX Runtime packs float32 weights into copies of its own.
    """
    sizes = {file: file.stat().st_size for file in bundle.path.iterdir() if file.is_file()}
    is_mapped = bundle.config.precision == "int8"
    mapped = sum(size for file, size in sizes.items() if is_mapped and file.suffix == WEIGHTS_SUFFIX)
    return sum(sizes.values()) - mapped, mapped


_IDLE_CHECK_SECONDS = 1.0
_PROBE = "e a о и 的 の 이 ا क"  # characters without a token are not decoded, and every model has some of these


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One change of the models. `seconds` has the duration of each step, by its name."""

    model: str
    outcome: Literal["added", "replaced", "unchanged", "removed", "failed"]
    seconds: dict[str, float] = field(default_factory=dict)
    error: str | None = None


class ModelSet:
    """The models that a server serves, in their order. Methods are for the event loop's thread.

    `publish` receives the router of the models after each change. Requests that began before finish with the models
    that they began with, which are unloaded afterwards. Changes wait for each other, and raise `Draining` after `stop`.
    """

    def __init__(self, settings: Settings, loader: ModelLoader, publish: Callable[[Router], None]) -> None:
        self._settings = settings
        self._loader = loader
        self._publish = publish
        self._pipelines: list[Pipeline] = []
        self._engines: list[EngineClient] = []
        self._router = Router([])
        self._added: list[Path] = []  # folders besides those of the settings
        self._changes = asyncio.Lock()
        self._next_reload: asyncio.Task[list[ModelChange]] | None = None  # that has not begun
        self.stopped = asyncio.Event()
        limit = settings.memory_limit
        self._budget = MemoryBudget(None if limit is None else limit * MEGABYTE)

    @property
    def engines(self) -> Sequence[EngineClient]:
        """The engines of all models."""
        return self._engines

    @property
    def router(self) -> Router:
        """The routes of all models."""
        return self._router

    def open(self, engines: Sequence[EngineClient]) -> None:
        """Serve with these engines. Raises ValueError for two models with one name."""
        for engine in engines:
            if isinstance(engine, OnDemandEngine):
                self._budget.add(engine)
        self._switch([self._pipeline(engine) for engine in engines])

    async def put(self, folder: Path) -> ModelChange:
        """Serve the bundle in `folder`, in place of a model with its name.

        Raises `InvalidRequest`, with the reason, if the bundle cannot be served; nothing changes then.
        """
        async with self._change():
            try:
                begun = time.perf_counter()
                bundle = await asyncio.to_thread(self._loader.check, folder)
                replaced = self._folder_of(bundle.config.name)
                change = await self._serve(bundle, time.perf_counter() - begun)
            except (BundleError, ValueError, OSError) as error:
                _log.error("model not changed", extra={"folder": str(folder), "cause": str(error)})
                raise InvalidRequest(f"{error}; the models are unchanged") from error
            self._added = [each for each in self._added if each not in (folder, replaced)] + [folder]
            return change

    async def remove(self, name: str) -> ModelChange:
        """Stop serving a model. Raises `NotFound`, and `InvalidRequest` for the only model."""
        async with self._change():
            folder = self.engine_of(name).bundle.path
            if len(self._engines) == 1:
                raise InvalidRequest(f"{name} is the only model, which cannot be removed; replace it instead")
            self._added = [each for each in self._added if each != folder]
            return await self._remove(name)

    async def reload(self) -> list[ModelChange]:
        """Compare the served models with the folders of the settings and those added later, and apply the difference.

        Of several bundles with one name, that of the last folder is served. A bundle that cannot be served leaves its
        model as it is. Calls that wait for another change share one comparison.
        """
        if self._next_reload is None:
            self._next_reload = asyncio.create_task(self._reload())
        return await asyncio.shield(self._next_reload)

    async def _reload(self) -> list[ModelChange]:
        async with self._change():
            self._next_reload = None
            try:
                found = bundle_folders([*self._settings.model, *(each for each in self._added if each.exists())])
            except BundleError as error:
                _log.error("models not changed", extra={"cause": str(error)})
                return [ModelChange("", "failed", error=str(error))]
            bundles = {folder: await self._checked(folder) for folder in found}
            last = {each.config.name: each for each in bundles.values() if isinstance(each, Bundle)}
            damaged = {folder for folder, each in bundles.items() if not isinstance(each, Bundle)}
            kept = {each.bundle.config.name for each in self._engines if each.bundle.path in damaged}
            changes: list[ModelChange] = []
            for folder, each in bundles.items():
                if not isinstance(each, Bundle):
                    changes.append(_failed(folder, each))
                elif each is last[each.config.name] and each.config.name not in kept:
                    try:
                        changes.append(await self._serve(each))
                    except (BundleError, ValueError, OSError) as error:
                        changes.append(_failed(folder, error))
            gone = [each.bundle.config.name for each in self._engines if each.bundle.config.name not in {*last, *kept}]
            changes += [await self._remove(name) for name in gone if len(self._engines) > 1]
            outcomes = {change.model: change.outcome for change in changes}
            _log.info("models compared with their folders", extra={"models": outcomes})
            return changes

    async def stop(self) -> None:
        """Reject changes from now on, and wait for the one that runs, which ends before it takes effect if it can."""
        self.stopped.set()
        async with self._changes:
            pass

    @contextlib.asynccontextmanager
    async def _change(self) -> AsyncIterator[None]:
        """Wait for the changes before."""
        async with self._changes:
            self._check_running()
            yield

    def _check_running(self) -> None:
        if self.stopped.is_set():
            raise Draining("the server is shutting down, and changes no models")

    async def _checked(self, folder: Path) -> Bundle | Exception:
        """Return the bundle in a folder, or why it cannot be served."""
        try:
            return await asyncio.to_thread(self._loader.check, folder)
        except (BundleError, ValueError, OSError) as error:
            return error

    def _folder_of(self, name: str) -> Path | None:
        return next((each.bundle.path for each in self._engines if each.bundle.config.name == name), None)

    async def unload(self, name: str) -> bool:
        """Free the memory of a model until its next request; return False while it is in use."""
        engine = self.engine_of(name)
        return isinstance(engine, OnDemandEngine) and await engine.unload()

    def engine_of(self, name: str) -> EngineClient:
        """Return the engine of a model. Raises `NotFound`."""
        for engine in self._engines:
            if engine.bundle.config.name == name:
                return engine
        names = ", ".join(engine.bundle.config.name for engine in self._engines)
        raise NotFound(f"no model has the name {name[:100]}; the models are {names}")

    async def unload_idle(self) -> None:
        """Unload models after `model_idle_seconds` without requests, until cancelled."""
        limit = self._settings.model_idle_seconds
        while limit is not None:
            await asyncio.sleep(min(limit / 4, _IDLE_CHECK_SECONDS))
            for engine in self._engines:
                if isinstance(engine, OnDemandEngine) and engine.is_idle and engine.idle_seconds >= limit:
                    await engine.unload()
                    _log.info("idle model unloaded", extra={"model": engine.bundle.config.name})

    async def _serve(self, bundle: Bundle, check_seconds: float = 0.0) -> ModelChange:
        begun = time.perf_counter()
        name, folder = bundle.config.name, bundle.path
        index = next((i for i, engine in enumerate(self._engines) if engine.bundle.config.name == name), None)
        if index is not None and self._engines[index].bundle == bundle:
            return ModelChange(name, "unchanged", {"verify": round(check_seconds, 3)})
        num_models = len(self._engines) + (index is None)
        engine = self._loader.engine(bundle, num_models, None)
        self._budget.add(engine)
        try:
            await engine.load()
            loaded = time.perf_counter()
            pipeline = await asyncio.to_thread(self._pipeline, engine)
            await _probe(pipeline)
            probed = time.perf_counter()
            self._check_running()
            old = None if index is None else self._engines[index]
            others = [each for each in self._pipelines if each.engine is not old]
            others.insert(len(others) if index is None else index, pipeline)
            before = self._switch(others)
        except BaseException as error:
            self._budget.remove(engine)
            await asyncio.to_thread(engine.close)
            if isinstance(error, KvasirError) and not isinstance(error, Draining):
                raise BundleError(f"{folder} cannot be served: {error}") from error
            raise
        switched = time.perf_counter()
        await self._retire(before, old)
        seconds = {
            "verify": check_seconds + probed - loaded,
            "load": loaded - begun,
            "drain": time.perf_counter() - switched,
        }
        outcome: Literal["added", "replaced"] = "added" if old is None else "replaced"
        _log.info("model changed", extra={"model": name, "outcome": outcome, "folder": str(folder)})
        return ModelChange(name, outcome, {step: round(duration, 3) for step, duration in seconds.items()})

    async def _remove(self, name: str) -> ModelChange:
        begun = time.perf_counter()
        old = self.engine_of(name)
        before = self._switch([each for each in self._pipelines if each.engine is not old])
        await self._retire(before, old)
        _log.info("model removed", extra={"model": name})
        return ModelChange(name, "removed", {"drain": round(time.perf_counter() - begun, 3)})

    def _switch(self, pipelines: list[Pipeline]) -> Router:
        """Publish the routes of these models; return the router before."""
        before, router = self._router, Router(pipelines, self._settings.pivot)
        self._publish(router)
        self._router, self._pipelines = router, pipelines
        self._engines[:] = [each.engine for each in pipelines]  # in place: metrics read this list
        return before

    async def _retire(self, before: Router, old: EngineClient | None) -> None:
        """Unload a model once no request uses it. Requests end by their deadlines."""
        if old is None:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(before.until_unused(), self._settings.request_timeout_seconds)
        await old.drain(1.0)
        if isinstance(old, OnDemandEngine):
            self._budget.remove(old)
            if await old.unload():
                return
        await asyncio.to_thread(old.close)

    def _pipeline(self, engine: EngineClient) -> Pipeline:
        return Pipeline(engine, self._settings.limits)


def _failed(folder: Path, error: Exception) -> ModelChange:
    _log.error("model not changed", extra={"folder": str(folder), "cause": str(error)})
    return ModelChange(folder.name, "failed", error=str(error))


async def _probe(pipeline: Pipeline) -> None:
    """Translate a short text on the way that requests take. Raises `KvasirError`."""
    config = pipeline.bundle.config
    options = DecodingOptions(max_new_tokens=8, if_already_target="translate")
    if not config.translates:
        await pipeline.generator.generate(GenerationRequest((_PROBE,), options, bypass_cache=True))
        return
    source = config.source_languages[0]
    target = next((each for each in config.target_languages if each != source), config.target_languages[0])
    await pipeline.translate(TranslationRequest((_PROBE,), source, target, options=options, bypass_cache=True))
