"""Kvasir, CTranslate2, Hugging Face, optimum-onnx and Marian: same weights, same sentences, same processors.

    python -m benchmarks.engines.compare [--checkpoint FOLDER] [--data FILE.tsv ...] [--limit N]

Without a checkpoint the others run on the random model of OPUS-MT's size only. How to read the result is in README.md.
"""

from collections.abc import Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from benchmarks.engines.engines import ENGINE_NAMES, EngineOptions, select, select_engines
from benchmarks.engines.measuring import Procedure, measure
from benchmarks.engines.models import Conversions, Model
from benchmarks.engines.report import render
from benchmarks.engines.results import Comparison
from benchmarks.engines.scoring import Scorer
from benchmarks.machine import describe_machine, usable_cpus
from benchmarks.paths import DEFAULT_BUNDLE, OUTPUT, SENTENCES
from benchmarks.workers.process import WorkerFailed
from benchmarks.workloads import OPUS_VOCAB_SIZE, Search, Workload, forced_workload, target_language, text_workload
from bundle.loading import Bundle, load_bundle
from server.text.tokenizers.registry import open_tokenizer

Kind = Literal["text", "opus"]

DEFAULT_DATA = [SENTENCES]
DEFAULT_CPUS = usable_cpus()
DEFAULT_ROWS = [32, 64, 128]
WORKLOAD_NAMES = [f"{kind}-{search}" for kind in get_args(Kind) for search in get_args(Search)]


def main(
    checkpoint: Annotated[
        Path | None, typer.Option(help="folder of a Hugging Face Marian checkpoint, the source of all conversions")
    ] = None,
    bundle: Annotated[
        list[Path] | None, typer.Option(help="bundles of it; others are exported from the checkpoint")
    ] = None,
    data: Annotated[
        list[Path], typer.Option(help="parallel text, source TAB reference; default: sentences without references")
    ] = DEFAULT_DATA,
    limit: Annotated[int | None, typer.Option(min=1, help="maximum number of lines of each file")] = None,
    target: Annotated[str | None, typer.Option(help="target language, for a model with several")] = None,
    workload: Annotated[
        list[str] | None, typer.Option(help=f"workloads: {', '.join(WORKLOAD_NAMES)}, or the part before the dash")
    ] = None,
    engine: Annotated[
        list[str] | None, typer.Option(help=f"engines: {', '.join(ENGINE_NAMES)}, or the part before the colon")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1)] = 5,
    threads: Annotated[int, typer.Option(min=1, help="processors of each engine")] = DEFAULT_CPUS,
    kvasir_rows: Annotated[list[int], typer.Option(help="numbers of rows per replica to try")] = DEFAULT_ROWS,
    opus_sentences: Annotated[int, typer.Option(min=1, help="number of sentences for the random model")] = 128,
    opus_tokens: Annotated[int, typer.Option(min=2, help="number of tokens that it generates for each")] = 24,
    tuning_sentences: Annotated[int, typer.Option(min=1, help="number of sentences for comparing settings")] = 256,
    tcmalloc: Annotated[bool, typer.Option(help="try it as the allocator if it is installed")] = True,
    max_seconds: Annotated[
        float, typer.Option(help="maximum seconds of an engine's repetitions; slower engines run fewer")
    ] = 180,
    python_of: Annotated[
        list[str] | None, typer.Option(help="PROGRAM=INTERPRETER, for an engine in its own environment")
    ] = None,
    timeout_seconds: Annotated[
        float, typer.Option(help="maximum seconds of one job; slower engines are excluded")
    ] = 1800,
    output: Annotated[Path, typer.Option(help="folder of results and converted models")] = OUTPUT,
) -> None:
    """Measure, and write comparison.json and comparison.md."""
    output = output.resolve()  # workers and conversions run elsewhere
    engines = select_engines(engine)
    chosen = select(WORKLOAD_NAMES, workload, "-")
    pythons = dict(entry.split("=", 1) for entry in python_of or [])
    conversions = Conversions(output / "models")
    allocator = find_library("tcmalloc_minimal") if tcmalloc else None
    procedure = Procedure(
        repetitions,
        max_seconds,
        tuning_sentences,
        [Path(allocator)] if allocator else [],
        output / "logs",
        timeout_seconds,
    )
    options = EngineOptions(threads, kvasir_rows, pythons)

    text_model = _text_model(checkpoint, bundle)
    text_bundle = _text_bundle(text_model, conversions)
    language = target_language(text_bundle, target)
    tokenizer = open_tokenizer(text_bundle)
    scorer = Scorer(tokenizer)
    comparison = Comparison(
        machine=describe_machine(),
        options={
            "repetitions": str(repetitions),
            "threads": str(threads),
            "limit": str(limit or "none"),
            "target": language,
        },
        workloads=[],
    )
    max_tokens = min(text_bundle.config.shapes.max_source_tokens, text_bundle.config.shapes.max_target_tokens)

    def workloads() -> Iterator[tuple[Workload, Model]]:
        for search in get_args(Search):
            if f"text-{search}" in chosen:
                for file in data:
                    yield (
                        text_workload(text_model.name, tokenizer, file, limit, search, max_tokens, language),
                        text_model,
                    )
        searches = [search for search in get_args(Search) if f"opus-{search}" in chosen]
        model = Model("opus-size", conversions.opus_size(), {}) if searches else text_model
        for search in searches:
            yield forced_workload(model.name, OPUS_VOCAB_SIZE, opus_sentences, opus_tokens, search), model

    output.mkdir(parents=True, exist_ok=True)
    try:
        for each, model in workloads():
            result = measure(each, model, engines, conversions, options, procedure, scorer)
            comparison.workloads.append(result)
            comparison.quality_signatures = scorer.signatures()
            # After each workload, so that an interrupted run keeps its results.
            _write(comparison, output)
    except WorkerFailed as failure:
        raise typer.BadParameter(f"cannot create the random model: {failure}") from failure
    print(render(comparison))


def _text_model(checkpoint: Path | None, folders: list[Path] | None) -> Model:
    if checkpoint is None and not folders:
        folders = [DEFAULT_BUNDLE]
    bundles = [load_bundle(folder.resolve()) for folder in folders or []]
    name = bundles[0].config.name if checkpoint is None else checkpoint.resolve().name
    return Model(name, checkpoint and checkpoint.resolve(), {each.config.precision: each.path for each in bundles})


def _text_bundle(model: Model, conversions: Conversions) -> Bundle:
    """Return a bundle of the model, for its tokenizer and limits; exports one if none was given."""
    try:
        return load_bundle(next(iter(model.bundles.values()), None) or conversions.kvasir(model, "int8"))
    except WorkerFailed as failure:
        raise typer.BadParameter(f"{model.name}: {failure}") from failure


def _write(comparison: Comparison, folder: Path) -> None:
    (folder / "comparison.json").write_text(comparison.model_dump_json(indent=2) + "\n", "utf-8")
    (folder / "comparison.md").write_text(render(comparison), "utf-8")


if __name__ == "__main__":
    typer.run(main)
