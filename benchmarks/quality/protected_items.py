"""Machine-readable spans that survive translation, the means that kept them, and the decoding that this takes.

    python -m benchmarks.quality.protected_items BUNDLE [--number 1000] [--seed 1] [--beam-size 4] [--target de]

Sentences are those of benchmarks.quality.raw_items with spans in place of numbers, dates, times and names. A span is
kept if the translation has it as often as the source. Exits with 1 if one is lost. The last line compares the decoding
with that of the same sentences around their spans, which the first mask stands for in the text itself.
"""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Annotated

import regex
import typer

from benchmarks.quality.raw_items import TEMPLATES
from benchmarks.workloads import target_language
from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.text.spans import SpanKind
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TranslationRequest
from server.workers.pool import EnginePool, PoolOptions

# Digits are drawn.
_SPANS = {
    SpanKind.ADDRESS: (
        "https://example.com/a?b=7&d=e#f",
        "www.example.org",
        "tom7@example.com",
        "http://localhost:8777",
    ),
    SpanKind.PLACEHOLDER: ("{name}", "{{ count }}", "%s", "%1$s", "${HOME}", "%(name)s", "##KEY##", ":name", "$(date)"),
    SpanKind.CODE: ("`git status`", "`x = 7`"),
    SpanKind.ENTITY: ("&nbsp;", "&amp;"),
    SpanKind.PATH: ("/usr/local/bin", "C:\\Temp\\x7", "docs/page7.md", "report.pdf", "data.tar.gz", "src/main/java"),
    SpanKind.NAME: ("@maria", "#music"),
    SpanKind.IDENTIFIER: ("AB-7777", "X777", "v7.7.7", "max_length", "--verbose", "DE77 3704 0044 0532 7777 00", "CO₂"),
    SpanKind.SYMBOL: ("🎉", "❤"),
    SpanKind.UNKNOWN: ("ქართული", "አማርኛ"),
}


def sentences_with_spans(seed: int, number: int, language: str) -> list[tuple[str, list[tuple[SpanKind, str]]]]:
    """Return random sentences with their spans, all kinds alike."""
    drawn = random.Random(seed)  # noqa: S311 - the same seed gives the same sentences
    made = []
    for index in range(number):
        kind = list(_SPANS)[index % len(_SPANS)]
        spans: list[tuple[SpanKind, str]] = []

        def span(_: object, kind: SpanKind = kind, spans: list[tuple[SpanKind, str]] = spans) -> str:
            written = regex.sub("7", lambda _: str(drawn.randint(2, 9)), drawn.choice(_SPANS[kind]))
            spans.append((kind, written))
            return written

        made.append((regex.sub(r"\{\w+\}", span, drawn.choice(TEMPLATES[language])), spans))
    return made


class _Rows:
    """The rows of all decoder steps together."""

    number = 0

    def step(self, rows: int, seconds: float) -> None:
        """Add a step."""
        self.number += rows


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    number: int = 1000,
    seed: int = 1,
    beam_size: int = 4,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
) -> None:
    """Print the spans that each kind lost, how the others were kept, and the cost."""
    bundle = load_bundle(bundle_folder)
    languages = bundle.config.source_languages[0], target_language(bundle, target)
    sentences = sentences_with_spans(seed, number, languages[0])
    texts = [text for text, _ in sentences]
    mask = bundle.config.copying.masks[0] if bundle.config.copying and bundle.config.copying.masks else "X"
    masked = [regex.sub("|".join(regex.escape(each) for _, each in spans), mask, text) for text, spans in sentences]
    rows, runs = _Rows(), []
    pool = EnginePool.open(bundle, PoolOptions(max_waiting=1 << 20, observe=rows))
    try:
        pipeline = Pipeline(pool, TranslationLimits())
        for inputs in (masked, texts):
            before = rows.number
            request = TranslationRequest(tuple(inputs), *languages, DecodingOptions(beam_size=beam_size))
            result = asyncio.run(pipeline.translate(request))
            runs.append(rows.number - before)
    finally:
        pool.close()
    total, lost = Counter[SpanKind](), Counter[SpanKind]()
    for (text, spans), translation in zip(sentences, result.translations, strict=True):
        for kind, span in spans:
            total[kind] += 1
            if translation.text.count(span) != text.count(span):
                lost[kind] += 1
                print(f"lost {kind} {span!r}: {text!r} -> {translation.text!r}")
    print("| kind | spans | kept | means |\n|---|---|---|---|")
    means = Counter((each.kind, each.means) for done in result.translations for each in done.protected)
    for kind, count in total.items():
        its_means = ", ".join(f"{each} {times}" for (of, each), times in sorted(means.items()) if of is kind)
        print(f"| {kind} | {count} | {count - lost[kind]} | {its_means} |")
    print(f"\n{lost.total()} of {total.total()} spans lost in {len(texts)} sentences; {runs[1]} rows times steps, "
          f"beam {beam_size}: {runs[1] / runs[0]:.2f} times those of plain sentences")  # fmt: skip
    raise typer.Exit(lost.total() > 0)


if __name__ == "__main__":
    typer.run(main)
