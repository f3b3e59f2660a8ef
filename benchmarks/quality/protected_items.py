"""Items that survive translation: numbers, dates, addresses, placeholders and signs, kind by kind.

    python -m benchmarks.quality.protected_items BUNDLE [--number 1000] [--seed 1] [--beam-size 4] [--target de]
        [--held-out] [--sentences FILE --column 1]

Sentences are drawn from a grammar, and with `--sentences` as many from a file of sentences (its column before the first
tab, or another one). With `--held-out` another grammar is used, which no rule was made with. An item counts as kept if
the translation has it by value. Exits with 1 if one is lost. The last line compares the decoding that the sentences
took with that of the same sentences as they are, in rows times steps.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from benchmarks.quality.item_sentences import held_out_sentences
from benchmarks.workloads import target_language
from bundle.loading import Bundle, load_bundle
from server.interface.decoding_options import DecodingOptions
from server.text.items.kinds import ItemKind
from server.text.items.survival import Answer
from server.text.readers.plain_text import read_text
from server.text.readers.units import Unit
from server.text.readers.unknown_characters import UnknownCharacters
from server.text.segmentation.sentences import split
from server.text.tokenizers.registry import open_tokenizer
from server.translation.deadline import NO_DEADLINE
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.sentence_encoder import SentenceEncoder
from server.translation.submission import Submission
from server.translation.types import TranslationRequest
from server.workers.engine_pool import EnginePool
from server.workers.pool_options import PoolOptions

_TEMPLATES: dict[str, tuple[str, ...]] = {
    "en": (
        "Your order {} has arrived.",
        "We have {} in the house.",
        "He wrote {} on the wall.",
        "Please send it to {} today.",
        "I saw {} yesterday.",
        "She needs {} for the trip.",
        "Click {} to open the door.",
        "The answer is {}.",
        "They paid {} and left with {}.",
        "From {} to {} it was quiet.",
        "What does {} mean?",
        "{} is not available.",
    ),
    "de": (
        "Ihre Bestellung {} ist angekommen.",
        "Wir haben {} im Haus.",
        "Er schrieb {} an die Wand.",
        "Bitte schicken Sie es heute an {}.",
        "Ich habe gestern {} gesehen.",
        "Sie braucht {} für die Reise.",
        "Klicken Sie {}, um die Tür zu öffnen.",
        "Die Antwort ist {}.",
        "Sie zahlten {} und gingen mit {}.",
        "Von {} bis {} war es ruhig.",
        "Was bedeutet {}?",
        "{} ist nicht verfügbar.",
    ),
}
_FIXED: dict[ItemKind, tuple[str, ...]] = {
    ItemKind.PHONE: ("+49 30 {2}{3}4567", "555-{4}", "(030) {3}{4}", "030/{4}{3}"),
    ItemKind.ACCOUNT: ("**** **** **** {4}", "DE89 3704 0044 0532 {4} 00", "4111 1111 {4} {4}"),
    ItemKind.VERSION: ("{1}.{1}.{1}-beta+{3}", "v{1}.{1}", "{1}.{1}.{1}", "v{1}.{1}.{1}-rc1"),
    ItemKind.CODE: ("AB-{4}", "X{3}", "{4}-XY", "PO{4}A"),
    ItemKind.EMAIL: ("tom{2}@example.com", "info@my-site.co.uk"),
    ItemKind.URL: (
        "https://example.com/a?b={2}&d=e#f", "www.example.org", "example.com/help", "http://localhost:8{3}/x",
        "example.com/help/{2}#top",
    ),
    ItemKind.PATH: (
        "/usr/local/bin", "src/main/java", "C:\\Temp\\x{1}", "\\\\server\\share\\a", "docs/page{1}.md",
        "C:\\Program Files\\App",
    ),
    ItemKind.FILE: ("report.pdf", "data.tar.gz", "IMG_{4}.PNG", "Brief an Oma.docx"),
    ItemKind.NAME: ("@tom_w", "@maria{2}"),
    ItemKind.TAG: ("#music", "#topic{1}"),
    ItemKind.IDENTIFIER: ("max_length", "--verbose", "USB-C", "10^{1}", "Xy{1}!k#{1}"),
    ItemKind.PLACEHOLDER: (
        "%s", "%1$s", "%(name)s", "{name}", "{0}", "{{ count }}", "%1", "%n", "%L1", ":name", "@:key", "$(date)",
        "${HOME}", "%{name}", "$PATH",
    ),
    ItemKind.ENTITY: ("&nbsp;", "&amp;"),
    ItemKind.CODE_SPAN: ("`git status`", "`x = {1}`"),
    ItemKind.SYMBOL: ("🎉", "❤"),
    ItemKind.SIGN: ("“the dog”", '"Tom"', "the house — the old one —", "the tea …", "a < b", "~{2} of them"),
}  # fmt: skip
_NUMERIC: dict[str, dict[ItemKind, tuple[str, ...]]] = {
    "en": {
        ItemKind.NUMBER: (
            "{1}", "{2}", "{3}", "{4}", "{2},{3}", "1.{1}", "0.{2}", "1,{3}.{2}", "19{2}", "1.{1} million", "{1}th",
            "{1}.{1}e{1}", "No. {1}",
        ),
        ItemKind.PERCENTAGE: ("{2} %", "{2}%", "{1}.{1}%"),
        ItemKind.MONEY: ("${2}", "€{2}.50", "${2},000", "USD {2}", "$1.{1} million", "£{2}k"),
        ItemKind.QUANTITY: ("{2} km", "{1}.{1} kg", "{3} MB", "-{1} °C"),
        ItemKind.DATE: ("20{2}-11-22", "11/2{1}/2024", "May {1}, 20{2}", "{1} March 20{2}", "June {1}th", "July 20{2}"),
        ItemKind.TIME: ("{1}:30 pm", "1{1}:05", "{1} a.m.", "1{1}:05 UTC"),
        ItemKind.RANGE: ("{1}-{2}", "1{1}–{2} km", "{1}:{1}", "1/{1}", "${1}–${2}", "{1} ½"),
        ItemKind.NUMERAL: ("Henry VIII", "Part IV"),
    },
    "de": {
        ItemKind.NUMBER: (
            "{1}", "{2}", "{3}", "{4}", "{2}.{3}", "1,{1}", "0,{2}",
            "1.{3},{2}", "19{2}", "1,{1} Millionen", "Nr. {1}",
        ),
        ItemKind.PERCENTAGE: ("{2} %", "{2}%", "{1},{1} %"),
        ItemKind.MONEY: ("{2} €", "{2},50 €", "{2}.000 $", "EUR {2}", "{2},- €"),
        ItemKind.QUANTITY: ("{2} km", "{1},{1} kg", "{3} MB", "-{1} °C"),
        ItemKind.DATE: ("20{2}-11-22", "2{1}.11.2024", "{1}. Mai 20{2}", "{1}. Oktober", "März 20{2}"),
        ItemKind.TIME: ("{1}:30", "1{1}:05", "1{1}:05 MEZ"),
        ItemKind.RANGE: ("{1}-{2}", "1{1}–{2} km", "{1}:{1}", "1/{1}", "{1}–{2} €", "{1} ½"),
        ItemKind.NUMERAL: ("Heinrich VIII", "Teil IV"),
    },
}  # fmt: skip


def sentences_with_items(seed: int, number: int, language: str) -> list[str]:
    """Return random sentences with one or two items of one kind each, all kinds alike."""
    drawn = random.Random(seed)  # noqa: S311 - the same seed gives the same sentences
    items = {**_NUMERIC[language], **_FIXED}
    made = []
    for index in range(number):
        kind = list(items)[index % len(items)]
        template = drawn.choice(_TEMPLATES[language])
        while "{}" in template:
            template = template.replace("{}", _filled(drawn.choice(items[kind]), drawn), 1)
        made.append(template)
    return made


def _filled(form: str, drawn: random.Random) -> str:
    for digits in "1234":
        while f"{{{digits}}}" in form:
            length = int(digits)
            form = form.replace(f"{{{digits}}}", str(drawn.randrange(2 * 10 ** (length - 1), 10**length)), 1)
    return form


class CheckedItem(NamedTuple):
    """An item of a source text, and whether the translation lost it."""

    kind: ItemKind
    text: str
    is_lost: bool


def checked_items(
    source: str, translation: str, unknown: UnknownCharacters, languages: tuple[str, str]
) -> list[CheckedItem]:
    """Return the items of a source text, and whether a translation lost each."""
    units = (part for part in read_text(source, unknown) if isinstance(part, Unit))
    items = [(each.kind, unit.text[each.start : each.end]) for unit in units for each in unit.protected]
    spans = Answer(translation, *languages).find(items)
    return [CheckedItem(kind, text, span is None) for (kind, text), span in zip(items, spans, strict=True)]


class _Cost:
    """The rows of all decoder steps together."""

    rows = 0

    def step(self, rows: int, seconds: float) -> None:
        """Add a step."""
        self.rows += rows


def _decode_plain(
    bundle: Bundle, pool: EnginePool, cost: _Cost, texts: Sequence[str], languages: tuple[str, str], beam_size: int
) -> int:
    """Decode the sentences of texts as they are; return the rows times steps."""
    source, target = languages
    limits, tokenizer = TranslationLimits(), open_tokenizer(bundle)
    request = TranslationRequest(tuple(texts), source, target, DecodingOptions(beam_size=beam_size))
    encoder = SentenceEncoder(request, limits, tokenizer, bundle.config)
    sentences = [segment.text for text in texts for segment in split(text, source, lambda part: True) if segment.text]
    requests = [encoder.plain_request(0, sentence, encoder.tokens(sentence)) for sentence in sentences]
    submission = Submission(pool, NO_DEADLINE, NO_DEADLINE.clock(), accepted_earlier=True)
    asyncio.run(submission.submit(requests))
    return cost.rows


def main(
    bundle_folder: Annotated[Path, typer.Argument(metavar="BUNDLE")],
    number: int = 1000,
    seed: int = 1,
    beam_size: int = 4,
    target: Annotated[str | None, typer.Option(help="target language, for a bundle with several")] = None,
    sentences: Annotated[Path | None, typer.Option(help="file of sentences; those with items are used")] = None,
    column: Annotated[int, typer.Option(help="column of the sentences in that file, from 1 on")] = 1,
    held_out: Annotated[bool, typer.Option("--held-out", help="draw from the second grammar")] = False,
) -> None:
    """Print the items that each kind lost, how the others were kept, and the cost."""
    bundle = load_bundle(bundle_folder)
    unknown = UnknownCharacters(open_tokenizer(bundle).known_characters)
    source, language = bundle.config.source_languages[0], target_language(bundle, target)
    texts = (held_out_sentences if held_out else sentences_with_items)(seed, number, source)
    if sentences is not None:
        lines = [line.split("\t")[column - 1] for line in sentences.read_text(encoding="utf-8").splitlines()]
        texts += [line for line in lines if checked_items(line, "", unknown, (source, language))][:number]
    cost = _Cost()
    pool = EnginePool.open(bundle, PoolOptions(replicas=1, threads_per_replica=1, max_waiting=1 << 20, observe=cost))
    try:
        plain_rows = _decode_plain(bundle, pool, cost, texts, (source, language), beam_size)
        request = TranslationRequest(tuple(texts), source, language, DecodingOptions(beam_size=beam_size))
        result = asyncio.run(Pipeline(pool, TranslationLimits()).translate(request))
    finally:
        pool.close()
    num_items, num_lost = Counter[str](), Counter[str]()
    for text, translation in zip(texts, result.translations, strict=True):
        for kind, item, is_lost in checked_items(text, translation.text, unknown, (source, language)):
            num_items[kind] += 1
            num_lost[kind] += is_lost
            if is_lost:
                print(f"lost {kind} {item!r}: {text!r} -> {translation.text!r}")
    for name, count in sorted(num_items.items()):
        kept = count - num_lost[name]
        print(f"{name:12} {kept:5} of {count:5} kept ({kept / count:.1%})")
    kept_means = Counter(item.means for each in result.translations for item in getattr(each, "protected", ()))
    print("means:", ", ".join(f"{means} {count}" for means, count in kept_means.most_common()))
    print(f"{num_lost.total()} of {num_items.total()} items lost in {len(texts)} sentences")
    rows = cost.rows - plain_rows
    print(f"{rows} rows times steps, beam {beam_size}; {rows / plain_rows:.2f} times those of plain decoding")
    raise typer.Exit(num_lost.total() > 0)


if __name__ == "__main__":
    typer.run(main)
