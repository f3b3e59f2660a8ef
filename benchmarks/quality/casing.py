"""BLEU and chrF of sentences in all caps, in a title's capitals and in lower case, beside those of the same sentences.

    python -m benchmarks.quality.casing BUNDLE --data FILE.tsv --data ... [--number 300] [--seed 1] [--swap-columns]
        [--beam-size 4] [--target de]

Each line of a file is a source, a tab and a reference; --swap-columns exchanges them. Answers and references are
compared in lower case, because the answer to a sentence in all caps is in all caps.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import regex
import typer
from sacrebleu.metrics import BLEU, CHRF

from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions

_WORD = regex.compile(r"[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*")


def _title(sentence: str) -> str:
    return _WORD.sub(lambda word: word[0][:1].upper() + word[0][1:], sentence)


FORMS: Mapping[str, Callable[[str], str]] = {"as it is": str, "caps": str.upper, "title": _title, "lower": str.lower}


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Annotated[list[Path], typer.Option(metavar="FILE.tsv")],
    number: int = 300,
    seed: int = 1,
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="read sources from the second column")] = False,
    beam_size: int = 4,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
) -> None:
    """Print BLEU and chrF of each form, as a Markdown table."""
    bundle = load_bundle(bundle_folder)
    source, language = bundle.config.source_languages[0], target_language(bundle, target)
    pairs: list[list[str]] = []
    for file in data:
        lines = [line.split("\t")[:2] for line in read_lines(file, None)]
        random.Random(seed).shuffle(lines)  # noqa: S311 - the same seed gives the same sentences
        pairs += lines[:number]
    sources, references = zip(*((pair[::-1] if swap_columns else pair) for pair in pairs), strict=True)
    bleu, chrf = BLEU(lowercase=True), CHRF(lowercase=True)
    pool = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1 << 20))
    print(f"{len(pairs)} sentences\n\n| form | BLEU | chrF |\n|---|---|---|")
    try:
        pipeline = Pipeline(pool, TranslationLimits())
        for name, change in FORMS.items():
            options = DecodingOptions(beam_size=beam_size)
            request = TranslationRequest(tuple(map(change, sources)), source, language, options)
            texts = [each.text for each in asyncio.run(pipeline.translate(request)).translations]
            scores = [metric.corpus_score(texts, [list(references)]).score for metric in (bleu, chrf)]
            print(f"| {name} | {' | '.join(f'{score:.1f}' for score in scores)} |")
    finally:
        pool.close()
    print(f"\nBLEU: {bleu.get_signature()}\nchrF: {chrf.get_signature()}")


if __name__ == "__main__":
    typer.run(main)
