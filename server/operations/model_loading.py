"""Engines of bundles: load, warm up, and load again on demand."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from bundle.loading import Bundle, check_unchanged, load_bundle
from bundle.manifest import BundleError
from bundle.tensors import WEIGHTS_SUFFIX
from server.documents.input.limits import MEGABYTE
from server.interface.engine_client import EngineClient
from server.interface.errors import KvasirError
from server.operations.bundle_search import bundle_folders
from server.operations.cpu_count import usable_cpus
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.text.language_detection import Detector
from server.text.language_identifier import load_identifier
from server.text.tokenizers.registry import open_tokenizer
from server.translation.glossaries import GlossaryStore
from server.workers.cache import CachedEngineClient
from server.workers.on_demand_engine import OnDemandEngine
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


def open_engines(settings: Settings, observer: Metrics) -> list[EngineClient]:
    """Return the engines of all models of `settings`, each behind its cache, loaded and warm.

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
