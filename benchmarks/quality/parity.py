"""Parity with Hugging Face: equal tokens and equal scores, over parallel text or on random models of a family.

    python -m benchmarks.quality.parity CHECKPOINT BUNDLE FILE.tsv ... [--limit N] [--swap-columns] [--target de]
    python -m benchmarks.quality.parity --family t5 [--family bart] [--count 5] [--sources 300] [--seed 1]

CHECKPOINT is a local Marian checkpoint and BUNDLE its float32 export. Sentences are the first column of the files, or
the second. Different answers are printed with their scores. If the scores agree to 1e-4 it is a tie decided by
rounding, otherwise a mistake; the exit code is then 1. `--family` makes random models of odd sizes; see
tests.model.families.random_families. `--family all` takes every family.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from transformers import MarianMTModel, MarianTokenizer

from benchmarks.in_process import InProcessEngine
from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.text.tokenizers.registry import open_tokenizer
from tests.model.families.random_families import compare_families
from tests.model.families.reference_answers import (
    SETTINGS,
    own_answer,
    reference_answers,
    report,
    within_limits,
)


def main(
    checkpoint: Annotated[Path | None, typer.Argument()] = None,
    bundle_folder: Annotated[Path | None, typer.Argument(metavar="BUNDLE")] = None,
    files: Annotated[list[Path] | None, typer.Argument(metavar="FILE.tsv")] = None,
    limit: Annotated[int | None, typer.Option(help="maximum number of sentences of each file")] = None,
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="read sentences from the second column")] = False,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
    family: Annotated[list[str] | None, typer.Option(help="random models of this family, or all")] = None,
    count: Annotated[int, typer.Option(min=1, help="random models of each family")] = 5,
    sources: Annotated[int, typer.Option(min=1, help="random sources for each model")] = 300,
    seed: Annotated[int, typer.Option(help="of sizes, weights and sources")] = 1,
) -> None:
    """Compare answers with Hugging Face `generate`: of a bundle, or of random models of a family."""
    if family:
        mistakes = compare_families([] if family == ["all"] else family, count, sources, seed)
        raise typer.Exit(1 if mistakes else 0)
    if checkpoint is None or bundle_folder is None or not files:
        raise typer.BadParameter("CHECKPOINT, BUNDLE and FILE.tsv are required, or --family")
    _compare_files(checkpoint, bundle_folder, files, limit, swap_columns=swap_columns, target=target)


def _compare_files(
    checkpoint: Path,
    bundle_folder: Path,
    files: Sequence[Path],
    limit: int | None,
    *,
    swap_columns: bool,
    target: str | None,
) -> None:
    bundle = load_bundle(bundle_folder)
    column = int(swap_columns)
    sentences = [line.split("\t")[column] for file in files for line in read_lines(file, limit)]
    model, reference_tokenizer = MarianMTModel.from_pretrained(checkpoint), MarianTokenizer.from_pretrained(checkpoint)
    model.eval()
    tokenizer, engine = open_tokenizer(bundle), InProcessEngine(bundle)
    language = target_language(bundle, target)
    # The reference reads the language token as the first word of the text.
    prefix = bundle.config.target_language_tokens.get(language, "")
    encoded = [tokenizer.encode(sentence, language) for sentence in sentences]
    different_ids = sum(
        source.tolist() != reference_tokenizer(f"{prefix} {sentence}" if prefix else sentence).input_ids
        for source, sentence in zip(encoded, sentences, strict=True)
    )
    print(f"{len(sentences)} sentences; source token ids differ in {different_ids}")
    mistakes = different_ids
    for name, params in SETTINGS.items():
        ours = [own_answer(completion) for completion in engine.decode(encoded, within_limits(params, model))]
        theirs = list(reference_answers(model, [source.tolist() for source in encoded], params))
        mistakes += report(name, sentences, ours, theirs)
    raise typer.Exit(1 if mistakes else 0)


if __name__ == "__main__":
    typer.run(main)
