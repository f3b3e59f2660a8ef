"""The engines and the settings to try for each; the best setting counts."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import typer

from benchmarks.engines.models import Conversions, Model, checkpoint_of
from benchmarks.workers.process import WorkerFailed
from benchmarks.workers.protocol import Job
from benchmarks.workloads import Workload

Program = Literal["kvasir", "ctranslate2", "hugging-face", "optimum", "marian"]
TITLES: dict[Program, str] = {
    "kvasir": "Kvasir",
    "ctranslate2": "CTranslate2",
    "hugging-face": "Hugging Face",
    "optimum": "optimum-onnx",
    "marian": "Marian",
}

# Batch sizes worth trying on a CPU: padded source tokens, or sentences.
BATCH_TOKENS = (256, 512, 1024, 2048)
BATCH_SENTENCES = (8, 32, 128)


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run an engine: the command of its worker, and its batches.

    `preload` is an allocator; None selects the C library's.
    """

    label: str
    command: tuple[str, ...]
    batch_size: int = 1
    batch_by: Literal["sentences", "tokens"] = "sentences"
    preload: Path | None = None

    def job(self, job: Job) -> Job:
        """Return the job with this setting's batches."""
        return job.model_copy(update={"batch_size": self.batch_size, "batch_by": self.batch_by})

    def preloading(self, allocator: Path) -> "Setting":
        """Return a copy with another allocator."""
        return replace(self, label=f"{self.label}, {allocator.name.split('.')[0]}", preload=allocator)


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of all engines.

    `kvasir_rows` are the rows per replica to try. `pythons` maps programs in their own environment to its interpreter.
    """

    cpus: int
    kvasir_rows: Sequence[int]
    pythons: dict[str, str]


@dataclass(frozen=True, slots=True)
class Engine:
    """A program with a precision."""

    program: Program
    precision: str

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{TITLES[self.program]} {self.precision}"

    @property
    def key(self) -> str:
        """Name on the command line."""
        return f"{self.program}:{self.precision}"


ENGINES = (
    Engine("kvasir", "int8"),
    Engine("kvasir", "float32"),
    Engine("ctranslate2", "int8"),
    Engine("ctranslate2", "float32"),
    Engine("hugging-face", "float32"),
    Engine("hugging-face", "bfloat16"),
    Engine("optimum", "float32"),
    Engine("marian", "float32"),
)


ENGINE_NAMES = [engine.key for engine in ENGINES]


def select_engines(chosen: Sequence[str] | None) -> list[Engine]:
    """Return the engines with these names, or of these programs; all if none are chosen.

    Raises `typer.BadParameter` for an unknown name.
    """
    names = select(ENGINE_NAMES, chosen, ":")
    return [engine for engine in ENGINES if engine.key in names]


def select(names: Sequence[str], chosen: Sequence[str] | None, separator: str) -> list[str]:
    """Return the names that `chosen` contains, whole or up to the separator; all names if nothing is chosen.

    Raises `typer.BadParameter` for an unknown name.
    """
    families = {name.split(separator)[0] for name in names}
    for entry in chosen or ():
        if entry not in names and entry not in families:
            raise typer.BadParameter(f"unknown name {entry!r}; available: {', '.join([*names, *sorted(families)])}")
    return [name for name in names if not chosen or name in chosen or name.split(separator)[0] in chosen]


def settings_of(
    engine: Engine, workload: Workload, model: Model, conversions: Conversions, options: EngineOptions
) -> list[Setting]:
    """Return the settings for a workload, converting the model if necessary; settings of one process are adjacent.

    Raises `WorkerFailed` with the reason if there is none.
    """
    start: tuple[str, ...]
    python = options.pythons.get(engine.program, sys.executable)
    match engine.program:
        case "kvasir":
            return list(_kvasir(conversions.kvasir(model, engine.precision), workload, python, options))
        case "ctranslate2":
            converted = conversions.ctranslate2(model, engine.precision)
            vocabulary = checkpoint_of(model) / "vocab.json"
            start = (str(converted), str(vocabulary), "--compute-type", engine.precision)
            return list(_ctranslate2(start, workload, python, options.cpus))
        case "hugging-face":
            start = (str(checkpoint_of(model)), "--dtype", engine.precision, "--threads", str(options.cpus))
            return list(_generate("hugging_face_worker", start, workload, python))
        case "optimum":
            start = (str(conversions.optimum(model, python)), "--threads", str(options.cpus))
            return list(_generate("optimum_worker", start, workload, python))
        case "marian":
            if workload.forced_length is not None:
                raise WorkerFailed("it cannot limit an answer to a number of tokens")
            start = (str(conversions.marian(model)), "--threads", str(options.cpus))
            return list(_marian(start, workload, python))


def _layouts(cpus: int) -> list[tuple[int, int]]:
    """Return pairs of the number of workers and the threads of each."""
    return [(cpus, 1), (1, cpus)] if cpus > 1 else [(1, 1)]


def _kvasir(bundle: Path, workload: Workload, python: str, options: EngineOptions) -> Iterator[Setting]:
    at_once = workload.sentences_at_once
    # A sentence takes a row for each beam, so this gives Kvasir the same number of sentences per batch.
    rows_to_try = options.kvasir_rows if at_once is None else [at_once * workload.beam_size]
    for replicas, threads in _layouts(options.cpus):
        for rows in rows_to_try:
            sizes = ("--replicas", str(replicas), "--threads-per-replica", str(threads), "--max-rows", str(rows))
            yield Setting(f"{replicas}x{threads}, {rows} rows", _module("kvasir_worker", python, str(bundle), *sizes))


def _ctranslate2(start: tuple[str, ...], workload: Workload, python: str, cpus: int) -> Iterator[Setting]:
    for inter, intra in _layouts(cpus):
        threads = ("--inter-threads", str(inter), "--intra-threads", str(intra))
        command = _module("ctranslate2_worker", python, *start, *threads)
        if workload.sentences_at_once is not None:
            yield Setting(f"{inter}x{intra}", command, workload.sentences_at_once)
        else:
            for tokens in BATCH_TOKENS:
                yield Setting(f"{inter}x{intra}, {tokens} tokens", command, tokens, "tokens")


def _generate(worker: str, start: tuple[str, ...], workload: Workload, python: str) -> Iterator[Setting]:
    command = _module(worker, python, *start)
    for sentences in BATCH_SENTENCES if workload.sentences_at_once is None else [workload.sentences_at_once]:
        yield Setting(f"{sentences} sentences", command, sentences)


def _marian(start: tuple[str, ...], workload: Workload, python: str) -> Iterator[Setting]:
    """Yield settings of Marian, which fixes search and batches when it loads."""
    search = ("--beam-size", str(workload.beam_size), "--length-penalty", str(workload.length_penalty))
    for sentences in BATCH_SENTENCES if workload.sentences_at_once is None else [workload.sentences_at_once]:
        batch = ("--batch-size", str(sentences))
        yield Setting(f"{sentences} sentences", _module("marian_worker", python, *start, *search, *batch), sentences)


def _module(worker: str, python: str, *arguments: str) -> tuple[str, ...]:
    return (python, "-m", f"benchmarks.workers.{worker}", *arguments)
