"""Forms of address in translations of sentences with "you", plain and with either form requested.

    python -m benchmarks.quality.formality BUNDLE --data FILE.tsv [--number 300] [--seed 1] [--target de]

Each line of the file is an English source and a tab before anything else.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Annotated

import regex
import typer

from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.text.formality import Formality, formality_rules
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from server.workers.pool import EnginePool, PoolOptions

_YOU = regex.compile(r"\byou\b", regex.IGNORECASE)


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Annotated[Path, typer.Option(metavar="FILE.tsv")],
    number: int = 300,
    seed: int = 1,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
) -> None:
    """Print the numbers of translations with each form of address, as a Markdown table."""
    bundle = load_bundle(bundle_folder)
    language = target_language(bundle, target)
    sources = [line.partition("\t")[0] for line in read_lines(data, None)]
    sources = [source for source in sources if _YOU.search(source)]
    random.Random(seed).shuffle(sources)  # noqa: S311 - the same seed gives the same sentences
    sources = sources[:number]
    rules = formality_rules(language)
    pool = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1 << 20))
    print("| requested | formal | informal | both | none |\n|---|---|---|---|---|")
    try:
        pipeline = Pipeline(pool, TranslationLimits())
        for form in (None, *Formality):
            request = TranslationRequest(tuple(sources), "en", language, formality=form)
            result = asyncio.run(pipeline.translate(request))
            counts = Counter(
                " and ".join(sorted(rules.forms(source, "en", translation.text)))
                for source, translation in zip(sources, result.translations, strict=True)
            )
            cells = [counts[forms] for forms in ("formal", "informal", "formal and informal", "")]
            print(f"| {form or 'nothing'} | {' | '.join(map(str, cells))} |")
    finally:
        pool.close()


if __name__ == "__main__":
    typer.run(main)
