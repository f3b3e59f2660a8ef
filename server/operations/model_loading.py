"""From the settings to engines that run: bundles found, loaded and warmed up, the threads shared out."""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bundle.loading import Bundle, load_bundle
from bundle.manifest import BundleError
from server.interface.engine_client import EngineClient
from server.interface.errors import KvasirError
from server.operations.bundle_search import bundle_folders
from server.operations.cpu_count import usable_cpus
from server.operations.metrics import Metrics
from server.operations.settings import Settings
from server.text.language_detection import Detector, load_identifier
from server.translation.glossary_store import GlossaryStore
from server.workers.engine_pool import EnginePool, PoolOptions
from server.workers.sentence_cache import CachedEngineClient

_log = logging.getLogger("kvasir")

# The event loop answers, refuses and tells probes while the engines keep all processors busy.
_ENGINE_NICENESS = 5

# Every process of an engine has a copy of its model; threads share one.
_MAX_COPIED_BYTES = 256_000_000


def open_replicas(settings: Settings, observer: Metrics) -> list[EngineClient]:
    """The engines of all models of `settings`, loaded and warm, each behind its cache.

    Raises `BundleError` for a bundle that cannot be served, with the file and the reason (what was opened is closed),
    and ValueError for languages that cannot be detected, for places that cannot be written to, and for a device that is
    not there.
    """
    _check_detection(settings.detect_languages)
    GlossaryStore(settings.glossary_file).close()  # the one that serves is opened with the application
    _check_documents_folder(settings.documents_folder)
    if settings.threads > (processors := usable_cpus()):
        # Their threads wait for each other inside every step.
        _log.warning(
            "more threads than processors: every request will take longer",
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
        observe=observer,
    )
    launched: list[EnginePool] = []
    try:
        # All before the first is waited for: processes load their graphs side by side.
        for folder in folders:
            bundle = load_bundle(folder)
            processes = settings.engine_processes
            if processes is None:
                processes = settings.device == "cpu" and _num_bytes(bundle) < _MAX_COPIED_BYTES
            launched.append(EnginePool.launch(bundle, replace(options, processes=processes)))
        for one in launched:
            _warm_up(one, options)
    except BaseException:
        for one in launched:
            one.close()
        raise
    return [CachedEngineClient(one, settings.cache_sentences, observer) for one in launched]


def _check_detection(languages: Sequence[str]) -> None:
    if unknown := Detector(languages).unknown:
        known = ", ".join(sorted(load_identifier().labels))
        raise ValueError(f"detect_languages has {', '.join(unknown)}; these can be detected: {known}")


def _check_documents_folder(folder: Path | None) -> None:
    if folder is not None and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise ValueError(
            f"documents_folder is {folder}, and no folder that can be written to: make it, or name another"
        )


def _num_bytes(bundle: Bundle) -> int:
    return sum(file.stat().st_size for file in bundle.path.iterdir() if file.is_file())


def _warm_up(replicas: EnginePool, options: PoolOptions) -> None:
    config = replicas.bundle.config
    try:
        replicas.warm_up_and_start()
    except KvasirError as error:
        message = f"{replicas.bundle.path} cannot be served: its first sentence failed: {error}"
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
            "processes": replicas.has_processes,
        },
    )
