"""Sentences whose source is kept, in documents that mix languages, code, names and letters without sense.

    python -m benchmarks.quality.mixed_documents BUNDLE --data FILE.tsv --data ... [--number 500] [--seed 1]
        [--swap-columns] [--beam-size 4] [--target de]

Each line of a file is a source, a tab and a reference; --swap-columns exchanges them. A document has ordinary source
lines, and among them lines of the target language or of the kinds in `untranslatable_lines`. Exits with 1 if more than
1 % of the ordinary lines have a kept sentence, if less than 90 % of the other lines are kept, or if a label counts as a
sentence of the target language.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from benchmarks.quality.untranslatable_lines import KINDS, label
from benchmarks.workloads import read_lines, target_language
from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.text.source_check import KeepReason
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import Translation, TranslationRequest
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions

_ORDINARY, _TARGET, _LABEL = "ordinary", "target language", "label"
_MAX_KEPT_ORDINARY, _MIN_KEPT_OTHERS = 0.01, 0.9


class Line(NamedTuple):
    """A line of a document, and its kind."""

    text: str
    kind: str


def _document(draw: random.Random, pairs: list[list[str]]) -> list[Line]:
    """Return ordinary lines with others among them, each with a blank line behind it."""
    lines = [Line(source, _ORDINARY) for source, _ in draw.sample(pairs, draw.randint(3, 6))]
    for _ in range(draw.randint(1, 2)):
        kind = draw.choice([_TARGET, _TARGET, *KINDS])
        text = draw.choice(pairs)[1] if kind == _TARGET else KINDS[kind](draw)
        lines.insert(draw.randrange(len(lines) + 1), Line(text, kind))
    if draw.random() < 0.3:
        lines.append(Line(label(draw), _LABEL))
    return lines


def _count(document: list[Line], translation: Translation, counts: Counter[tuple[str, str]]) -> list[str]:
    """Count lines by kind and outcome; return the ordinary sentences that were kept."""
    written = translation.text.split("\n\n")
    reasons = {each.text: each.reason for each in translation.kept}
    mistakes = []
    for line, output in zip(document, written, strict=True):
        found = [reason for text, reason in reasons.items() if text in line.text]
        counts[line.kind, "lines"] += 1
        if line.kind == _ORDINARY:
            mistakes += [line.text] * bool(found)
            counts[line.kind, "kept"] += bool(found)
        elif line.kind == _LABEL:
            counts[line.kind, "kept"] += KeepReason.ALREADY_IN_TARGET_LANGUAGE in found
        else:
            counts[line.kind, "kept"] += output.strip() == line.text.strip()
        for reason in set(found):
            counts[line.kind, reason] += 1
    return mistakes


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    data: Annotated[list[Path], typer.Option(metavar="FILE.tsv")],
    number: int = 500,
    seed: int = 1,
    swap_columns: Annotated[bool, typer.Option("--swap-columns", help="read sources from the second column")] = False,
    beam_size: int = 4,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
) -> None:
    """Print the share of kept lines by kind, as a Markdown table."""
    bundle = load_bundle(bundle_folder)
    source, language = bundle.config.source_languages[0], target_language(bundle, target)
    pairs = [line.split("\t")[:2] for file in data for line in read_lines(file, None)]
    pairs = [pair[::-1] if swap_columns else pair for pair in pairs]
    draw = random.Random(seed)  # noqa: S311 - the same seed gives the same documents
    documents = [_document(draw, pairs) for _ in range(number)]
    pool = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1 << 20))
    counts: Counter[tuple[str, str]] = Counter()
    try:
        pipeline = Pipeline(pool, TranslationLimits())
        texts = tuple("\n\n".join(line.text for line in document) for document in documents)
        request = TranslationRequest(texts, source, language, DecodingOptions(beam_size=beam_size))
        translations = asyncio.run(pipeline.translate(request)).translations
    finally:
        pool.close()
    mistakes = [text for each, done in zip(documents, translations, strict=True) for text in _count(each, done, counts)]
    print(f"{number} documents\n\n| line | number | kept | reasons |\n|---|---|---|---|")
    for kind in (_ORDINARY, _TARGET, *KINDS, _LABEL):
        num_lines, num_kept = counts[kind, "lines"], counts[kind, "kept"]
        reasons = ", ".join(f"{counts[kind, reason]} {reason}" for reason in KeepReason if counts[kind, reason])
        print(f"| {kind} | {num_lines} | {100 * num_kept / max(num_lines, 1):.1f} % | {reasons} |")
    others = [_TARGET, *KINDS]
    share = sum(counts[kind, "kept"] for kind in others) / sum(counts[kind, "lines"] for kind in others)
    mistaken = counts[_ORDINARY, "kept"] / counts[_ORDINARY, "lines"]
    print(f"\nkept by mistake: {100 * mistaken:.2f} %; others kept: {100 * share:.1f} %")
    for text in mistakes:
        print(f"  kept by mistake: {text}")
    if mistaken > _MAX_KEPT_ORDINARY or share < _MIN_KEPT_OTHERS or counts[_LABEL, "kept"]:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
