"""The measurement: find each engine's best setting, then run the engines interleaved."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from benchmarks.engines.engines import Engine, EngineOptions, Setting, settings_of
from benchmarks.engines.models import Conversions, Model
from benchmarks.engines.results import Measurement, WorkloadResult
from benchmarks.engines.scoring import Scorer
from benchmarks.machine import busy_seconds, process_seconds, usable_cpus
from benchmarks.progress import log_progress
from benchmarks.workers.process import Worker, WorkerFailed
from benchmarks.workers.protocol import Done
from benchmarks.workloads import Workload

WARM_UP_SENTENCES = 32
CLOCK_SECONDS = 0.03  # resolution: processor time of several clocks is counted in hundredths of a second


@dataclass(frozen=True, slots=True)
class Procedure:
    """Parameters of the measurement.

    `allocators` are shared libraries to try besides the C library's allocator. An engine whose repetitions would exceed
    `max_seconds` runs fewer of them and is tuned on fewer sentences.
    """

    repetitions: int
    max_seconds: float
    tuning_sentences: int
    allocators: Sequence[Path]
    logs: Path
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class _StartedEngine:
    worker: Worker
    setting: Setting
    measurement: Measurement
    repetitions: int


def measure(
    workload: Workload,
    model: Model,
    engines: Sequence[Engine],
    conversions: Conversions,
    options: EngineOptions,
    procedure: Procedure,
    scorer: Scorer | None,
) -> WorkloadResult:
    """Tune every engine, start each with its best setting, and run them interleaved: A B C A B C."""
    measurements: list[Measurement] = []
    started: list[_StartedEngine] = []
    open_workers: list[Worker] = []
    try:
        for engine in engines:
            measurement = Measurement(engine=engine.name)
            measurements.append(measurement)
            try:
                settings = settings_of(engine, workload, model, conversions, options)
                setting, measurement.tuned = _tune(settings, workload, procedure)
                worker = _start(setting, workload, procedure)
                open_workers.append(worker)
                # Not timed: allocates the engine's buffers before its first repetition.
                done = worker.run(setting.job(workload.job(return_outputs=True)))
            except WorkerFailed as failure:
                measurement.not_run = str(failure)
            else:
                measurement.setting, measurement.versions = setting.label, worker.versions
                measurement.start_seconds = worker.start_seconds
                _judge(measurement, workload, done, scorer)
                repetitions = max(1, min(procedure.repetitions, int(procedure.max_seconds / done.seconds)))
                started.append(_StartedEngine(worker, setting, measurement, repetitions))
        for repetition in range(procedure.repetitions):
            for one in started:
                if one.measurement.not_run is None and repetition < one.repetitions:
                    _repeat(one, workload)
    finally:
        for worker in open_workers:
            worker.close()
    return WorkloadResult(workload=workload.name, num_sentences=len(workload.sources), measurements=measurements)


def _repeat(engine: _StartedEngine, workload: Workload) -> None:
    measurement = engine.measurement
    pid = engine.worker.pid
    wall, busy = time.perf_counter(), busy_seconds()
    ours = process_seconds(pid) + time.process_time()
    try:
        done = engine.worker.run(engine.setting.job(workload.job()))
    except WorkerFailed as failure:
        measurement.not_run = str(failure)
        return
    others = busy_seconds() - busy - (process_seconds(pid) + time.process_time() - ours)
    available = (time.perf_counter() - wall) * usable_cpus()
    measurement.disturbance.append(round(max(others - CLOCK_SECONDS, 0.0) / available, 3))
    measurement.seconds.append(done.seconds)
    measurement.output_tokens = done.output_tokens
    measurement.peak_bytes = done.peak_bytes
    log_progress(f"  {measurement.engine:<22} {done.output_tokens / done.seconds:>9.0f} tokens/s")


def _judge(measurement: Measurement, workload: Workload, done: Done, scorer: Scorer | None) -> None:
    """Score the answers, and exclude an engine whose answers have the wrong length."""
    assert done.outputs is not None, "requested by the job"
    if (wrong := _wrong_length(workload, done.outputs)) is not None:
        measurement.not_run = wrong
    elif scorer is not None and workload.references is not None:
        measurement.bleu, measurement.chrf = scorer.score(done.outputs, workload.references)


def _wrong_length(workload: Workload, outputs: list[list[int]]) -> str | None:
    """Return why the answers do not have the forced length, or None: an engine must not win by generating less."""
    found = {len(output) for output in outputs}
    if workload.forced_length is None or found == {workload.forced_length}:
        return None
    return f"generated {min(found)} to {max(found)} tokens per sentence instead of {workload.forced_length}"


def _tune(settings: list[Setting], workload: Workload, procedure: Procedure) -> tuple[Setting, dict[str, float]]:
    """Return the fastest setting on a sample of the workload, and the speeds of all.

    Raises `WorkerFailed` if all settings fail.
    """
    speeds: dict[Setting, float] = {}
    failure: WorkerFailed | None = None
    for _, same_process in groupby(settings, key=lambda setting: setting.command):
        try:
            speeds |= _speeds(list(same_process), workload, procedure)
        except WorkerFailed as failed:
            failure = failed
    if not speeds:
        assert failure is not None, "an engine has at least one setting"
        raise failure
    # Allocators are tried with the best setting only; they affect all settings alike.
    fastest = max(speeds, key=lambda setting: speeds[setting])
    for allocator in procedure.allocators:
        speeds |= _speeds([fastest.preloading(allocator)], workload, procedure)
    return max(speeds, key=lambda setting: speeds[setting]), {
        setting.label: round(speed, 1) for setting, speed in speeds.items()
    }


def _speeds(settings: list[Setting], workload: Workload, procedure: Procedure) -> dict[Setting, float]:
    """Return tokens per second of settings that differ only in their batches; the better of two runs in one process."""
    with _start(settings[0], workload, procedure) as worker:
        warm_up = worker.run(settings[0].job(workload.sample(WARM_UP_SENTENCES)))
        affordable = WARM_UP_SENTENCES * procedure.max_seconds / (2 * len(settings) * warm_up.seconds)
        num_sentences = min(procedure.tuning_sentences, max(WARM_UP_SENTENCES, int(affordable)))
        # Batches larger than the sample equal one batch of all its sentences.
        fitting = [
            setting for setting in settings if setting.batch_by == "tokens" or setting.batch_size <= num_sentences
        ]
        settings = fitting or settings[:1]
        sample = workload.sample(num_sentences)
        # Two rounds over all of them, so that a disturbance does not hit both runs of one.
        runs: list[list[Done]] = [[worker.run(setting.job(sample)) for setting in settings] for _ in range(2)]
    fastest = [min(of_setting, key=lambda done: done.seconds) for of_setting in zip(*runs, strict=True)]
    return {setting: done.output_tokens / done.seconds for setting, done in zip(settings, fastest, strict=True)}


def _start(setting: Setting, workload: Workload, procedure: Procedure) -> Worker:
    words = f"{workload.name} {setting.command[2].rsplit('.', 1)[-1]} {setting.label}"
    name = "".join(character if character.isalnum() else "-" for character in words)
    log_progress(f"starting {words}")
    return Worker(setting.command, procedure.logs / f"{name}.log", setting.preload, procedure.timeout_seconds)
