"""Placeholders lost in translation: sentences with variables, addresses, quantities and symbols.

    python -m benchmarks.quality.placeholders BUNDLE [--number 500] [--seed 1] [--beam-size 4] [--target de]

Exits with 1 if one is lost. Sentences are counted by the last protection that they needed, see
server/translation/protection_strategies.py; sentences without a placeholder are not counted.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.workloads import target_language
from bundle.loading import load_bundle
from server.interface.decoding_options import DecodingOptions
from server.interface.request import Request, Tokens
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.protection_strategies import Protection, protections_for
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.sentences import Sentence
from server.translation.types import TranslationRequest
from server.workers.engine_pool import EnginePool, PoolOptions

_TEMPLATES = (
    "Hello {}, how are you?",
    "The file {} is too big.",
    "You have {} new messages.",
    "I saw {} yesterday.",
    "Click {} to open the door.",
    "Please visit {} for more information.",
    "Write to {} if you need help.",
    "{} is not available.",
    "Your order {} has been sent to {}.",
    "Can you give {} to me?",
    "We installed {} on {} and it works.",
    "Thank you for using {}!",
    "Enter {} and press the button. Then wait for {}.",
    "He weighs {} and she weighs {}.",
    "From {} to {}, {} and {}",
)
_PLACEHOLDERS = (
    "%1$s", "%2$d", "%s", "%d", "%.2f", "%(count)d", "%(user_name)s", "%@", "%USERPROFILE%", "{name}", "{0}",
    "{user.name}", "{{var}}", "${HOME}", "$PATH", "${user.id}", "&nbsp;", "https://example.com/a?b=c&d=e#f",
    "http://localhost:8000/x_y", "www.example.org", "v3", "2.0.1", "john.doe@example.com", "info@my-site.co.uk",
    "10%", "$20", "€1,000.50", "16px", "v1.2.3-rc1", "#hashtag", "@tom_w", "3.14", "`code`", "/usr/local/bin",
    "report_final.pdf", "--verbose", "max_length", "🎉", "李明", "{{ count }}",
    "{n, plural, one {# file} other {# files}}", "<x id=1/>", '<g id="2"/>', "5 km", "3.5 GB", "-4 °C", "120 km/h",
)  # fmt: skip


def placeholder_sentences(seed: int, number: int) -> list[tuple[str, list[str]]]:
    """Return random sentences with their placeholders."""
    drawn = random.Random(seed)  # noqa: S311 - the same seed gives the same sentences
    made = []
    for _ in range(number):
        template = drawn.choice(_TEMPLATES)
        placeholders = drawn.sample(_PLACEHOLDERS, template.count("{}"))
        parts = template.split("{}")
        text = parts[0] + "".join(placeholder + part for placeholder, part in zip(placeholders, parts[1:], strict=True))
        made.append((text, placeholders))
    return made


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    number: int = 500,
    seed: int = 1,
    beam_size: int = 4,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
) -> None:
    """Print the number of sentences that lost a placeholder, and how many needed each protection."""
    sentences = placeholder_sentences(seed, number)
    last_protections: dict[int, Protection] = {}
    encode = SentenceEncoder.encode

    def recorded(
        self: SentenceEncoder,
        sentences: Iterable[Sentence],
        protection: Protection,
        suppressed: tuple[Tokens, ...] = (),
    ) -> list[Request]:
        unsettled = list(sentences)
        for sentence in unsettled:
            if any(sentence.start <= each.start < sentence.end for each in sentence.unit.protected):
                last_protections[id(sentence)] = protection
        return encode(self, unsettled, protection, suppressed)

    SentenceEncoder.encode = recorded  # type: ignore[method-assign]
    bundle = load_bundle(bundle_folder)
    replicas = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1 << 20))
    try:
        source, language = bundle.config.source_languages[0], target_language(bundle, target)
        request = TranslationRequest(
            tuple(text for text, _ in sentences), source, language, DecodingOptions(beam_size=beam_size)
        )
        begun = time.perf_counter()
        result = asyncio.run(Pipeline(replicas, TranslationLimits()).translate(request))
        seconds = time.perf_counter() - begun
    finally:
        replicas.close()
    num_lost = 0
    for (text, placeholders), translation in zip(sentences, result.translations, strict=True):
        if any(translation.text.count(each) != text.count(each) for each in placeholders):
            num_lost += 1
            print(f"lost: {text!r} -> {translation.text!r}")
    counts = Counter(last_protections.values())
    print(f"{num_lost} of {number} sentences lost a placeholder; {seconds:.1f} s, one thread, beam {beam_size}")
    for protection in protections_for(source):
        print(f"{protection}: {counts[protection]} sentences")
    raise typer.Exit(num_lost > 0)


if __name__ == "__main__":
    typer.run(main)
