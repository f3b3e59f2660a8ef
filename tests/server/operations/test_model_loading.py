"""Errors and log lines about the bundles at the start."""

import math
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bundle.loading import load_bundle, save_manifest
from bundle.manifest import BundleError
from server.documents.input.limits import MEGABYTE
from server.operations.cpu_count import usable_cpus
from server.operations.defaults import DEFAULT_MODEL
from server.operations.metrics import Metrics
from server.operations.models import ModelLoader, open_engines
from server.operations.settings import Settings
from server.workers.on_demand_engine import OnDemandEngine
from tests.end_to_end.servers import PATIENCE_SECONDS, ROOT, relabelled


def _engine_threads() -> int:
    return sum(thread.name.startswith("engine-") for thread in threading.enumerate())


def test_every_bundle_of_a_folder_gets_its_share_of_the_threads(tmp_path: Path) -> None:
    for target in ("de", "fr"):
        relabelled(tmp_path, "en", target)
    before = _engine_threads()
    opened = open_engines(Settings(model=[tmp_path], threads=4, max_rows=8), Metrics())
    try:
        assert [generator.bundle.config.name for generator in opened] == ["en-de", "en-fr"]
        assert _engine_threads() == before + 4
    finally:
        for generator in opened:
            generator.close()


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


def test_each_process_of_a_model_takes_memory() -> None:
    def needed(replicas: int, *, processes: bool) -> int:
        settings = Settings(threads=4, replicas=replicas, engine_processes=processes)
        return ModelLoader(settings, Metrics()).num_bytes(bundle, 1)

    bundle = load_bundle(DEFAULT_MODEL)
    in_threads, in_processes = ([needed(each, processes=is_there) for each in (1, 2, 3)] for is_there in (False, True))
    assert in_threads[0] == in_threads[2] < in_processes[0]
    assert in_processes[2] - in_processes[1] == in_processes[1] - in_processes[0] > 0


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
