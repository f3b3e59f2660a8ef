"""BLEU and chrF of bundles over parallel text, greedy and beam search, as a Markdown table.

    python -m benchmarks.quality.bleu BUNDLE ... --data FILE.tsv --data ... [--limit N] [--swap-columns] [--target de]

Each line of a file is a source, a tab and a reference; --swap-columns exchanges them. Every line is decoded as a whole,
without sentence splitting.
"""

from pathlib import Path
from typing import Annotated

import typer
from sacrebleu.metrics import BLEU, CHRF

from benchmarks.in_process import InProcessEngine
from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.interface.request import SentenceParams
from server.text.tokenizers.registry import open_tokenizer

BEAM_SIZES = {"greedy": 1, "beam 4": 4}


def main(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE")],
    data: Annotated[list[Path], typer.Option(metavar="FILE.tsv")],
    limit: Annotated[int | None, typer.Option(help="maximum number of lines of each file")] = None,
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="read sources from the second column")] = False,
    target: Annotated[str | None, typer.Option(help="target language, for bundles with several")] = None,
) -> None:
    """Print one row for each bundle, search and file."""
    bleu, chrf = BLEU(), CHRF()
    print("| data | lines | precision | search | BLEU | chrF |\n|---|---|---|---|---|---|")
    for file in data:
        pairs = [line.split("\t") for line in read_lines(file, limit)]
        source_column, reference_column = (1, 0) if swap_columns else (0, 1)
        references = [[pair[reference_column] for pair in pairs]]
        for folder in bundles:
            bundle = load_bundle(folder)
            tokenizer, engine = open_tokenizer(bundle), InProcessEngine(bundle)
            language = target_language(bundle, target)
            sources = [tokenizer.encode(pair[source_column], language) for pair in pairs]
            for name, beam_size in BEAM_SIZES.items():
                params = SentenceParams(beam_size=beam_size, max_new_tokens=bundle.config.shapes.max_target_tokens)
                completions = engine.decode(sources, params)
                texts = [tokenizer.decode(completion.hypotheses[0].token_ids) for completion in completions]
                print(
                    f"| {file.name} | {len(pairs)} | {bundle.config.precision} | {name} "
                    f"| {bleu.corpus_score(texts, references).score:.1f} "
                    f"| {chrf.corpus_score(texts, references).score:.1f} |"
                )
    print(f"\nBLEU: {bleu.get_signature()}\nchrF: {chrf.get_signature()}")


if __name__ == "__main__":
    typer.run(main)
