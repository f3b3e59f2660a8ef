"""Start of the engines: find, load and warm up the bundles of the settings."""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bundle.loading import Bundle, load_bundle
from bundle.manifest import BundleError
from server.documents.input.limits import MEGABYTE
from server.interface.engine_client import EngineClient
from server.interface.errors import KvasirError
from server.operations.bundle_search import bundle_folders
from server.operations.cpu_count import usable_cpus
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.text.language_detection import Detector, load_identifier
from server.text.tokenizers.registry import open_tokenizer
from server.translation.glossary_store import GlossaryStore
from server.workers.engine_pool import EnginePool, PoolOptions
from server.workers.sentence_cache import CachedEngineClient

_log = logging.getLogger("kvasir")

# Leave one CPU's share to the event loop: probes must be answered while all engines run.
_ENGINE_NICENESS = 5

# Each engine process has a copy of its model; engine threads share one.
_MAX_COPIED_BYTES = 256_000_000


def open_engines(settings: Settings, observer: Metrics) -> list[EngineClient]:
    """Return the engines of all models of `settings`, loaded and warm, each behind its cache.

    Raises `BundleError`, with file and reason, if a bundle cannot be served; engines opened before are closed. Raises
    ValueError for languages that cannot be detected, for paths that are not writable, and for a missing device.
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
    replicas, threads_per_replica = settings.shares(len(folders))
    options = PoolOptions(
        replicas=replicas,
        threads_per_replica=threads_per_replica,
        max_rows=settings.max_rows,
        max_waiting=settings.max_waiting_requests,
        max_encoder_tokens=settings.max_encoder_tokens,
        device=settings.device,
        max_queue_seconds=settings.max_queue_seconds,
        niceness=_ENGINE_NICENESS,
        heartbeat_limit_seconds=settings.heartbeat_limit_seconds,
        observe=observer,
    )
    launched: list[EnginePool] = []
    try:
        # Launch all before waiting for the first: processes load their graphs in parallel.
        for folder in folders:
            bundle = load_bundle(folder)
            open_tokenizer(bundle)  # a damaged one is reported before anything is served
            processes = settings.engine_processes
            if processes is None:
                processes = settings.device == "cpu" and _num_bytes(bundle) < _MAX_COPIED_BYTES
            launched.append(EnginePool.launch(bundle, replace(options, processes=processes)))
        for pool in launched:
            _warm_up(pool, options)
    except BaseException:
        for pool in launched:
            pool.close()
        raise
    cache_bytes = settings.cache_megabytes * MEGABYTE
    return [CachedEngineClient(pool, settings.cache_sentences, observer, cache_bytes) for pool in launched]


def _check_detection(languages: Sequence[str]) -> None:
    if unknown := Detector(languages).unknown:
        known = ", ".join(sorted(load_identifier().labels))
        raise ValueError(
            f"`detect_languages` must be languages that can be detected: {known}. Given: {', '.join(unknown)}"
        )


def _check_documents_folder(folder: Path | None) -> None:
    if folder is not None and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise ValueError(f"`documents_folder` must be a writable folder; create it or set another. Given: {folder}")


def _num_bytes(bundle: Bundle) -> int:
    return sum(file.stat().st_size for file in bundle.path.iterdir() if file.is_file())


def _warm_up(pool: EnginePool, options: PoolOptions) -> None:
    config = pool.bundle.config
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
            "replicas": options.replicas,
            "threads_per_replica": options.threads_per_replica,
            "processes": pool.has_processes,
        },
    )
