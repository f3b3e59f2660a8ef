"""A model that is right is never made worse: what it writes comes back, and it reads what was sent."""

import asyncio
from collections.abc import Iterator
from functools import cache

import pytest

from bundle.manifest import SpanCopying
from server.interface.decoding_options import NO_OPTIONS, DecodingOptions
from server.text.language_detection import Detector
from server.text.spans import READABLE
from server.translation.limits import TranslationLimits
from server.translation.router import Router
from server.translation.service import TranslationOutcome, TranslationService
from server.translation.text_stream import TextStream
from server.translation.types import TextFormat, TranslationRequest
from tests.fakes.rule_engine import RuleEngine, byte_bundle
from tests.server.translation.parallel_sentences import ENGLISH, TRANSLATIONS

LIMITS = TranslationLimits()
_MARKUP: tuple[TextFormat, ...] = ("html", "xml")


def _pairs() -> Iterator[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    for language, translations in TRANSLATIONS.items():
        yield "en", language, ENGLISH, translations
        yield language, "en", translations, ENGLISH
    languages = list(TRANSLATIONS)
    for source, target in zip(languages, languages[1:] + languages[:1], strict=True):
        yield source, target, TRANSLATIONS[source], TRANSLATIONS[target]


PAIRS = pytest.mark.parametrize(
    ("source", "target", "texts", "answers"),
    list(_pairs()),
    ids=[f"{source}-{target}" for source, target, *_ in _pairs()],
)


@cache
def _engine(source: str, target: str, texts: tuple[str, ...], answers: tuple[str, ...]) -> RuleEngine:
    """Return a model that translates these texts so."""
    return RuleEngine(byte_bundle(source, target), dict(zip(texts, answers, strict=True)).__getitem__)


def _translate(
    engine: RuleEngine,
    texts: tuple[str, ...],
    pair: tuple[str, str],
    format_: TextFormat = "text",
    options: DecodingOptions = NO_OPTIONS,
    stream: TextStream | None = None,
) -> TranslationOutcome:
    service = TranslationService(Router([engine.pipeline], pivot=""), Detector(pair), LIMITS)
    return asyncio.run(service.translate(TranslationRequest(texts, *pair, options, format=format_), *pair, stream))


@PAIRS
def test_the_answer_of_a_model_is_the_translation_and_it_reads_the_source(
    source: str, target: str, texts: tuple[str, ...], answers: tuple[str, ...]
) -> None:
    engine = _engine(source, target, texts, answers)
    engine.batches.clear()
    outcome = _translate(engine, texts, (source, target))
    found = outcome.result.translations
    assert [each.text for each in found] == list(answers)
    [batch] = engine.batches  # one request for each sentence, all at once
    expected = [engine.tokenizer.encode(text, target, source).tolist() for text in texts]
    assert sorted(each.source.tolist() for each in batch) == sorted(expected)
    assert not any(each.kept or each.protected or each.repaired or each.incomplete for each in found)
    assert not any(each.missing_numbers or each.invented_numbers for each in found)


@PAIRS
def test_several_sentences_are_joined_as_both_languages_are_written(
    source: str, target: str, texts: tuple[str, ...], answers: tuple[str, ...]
) -> None:
    """Two lines keep their line break; a pair of them in a paragraph does, too."""
    engine = _engine(source, target, texts, answers)
    found = _translate(engine, ("\n".join(texts),), (source, target)).result.translations[0]
    assert found.text == "\n".join(answers)
    assert _streamed(engine, "\n".join(texts), (source, target)) == found.text


def _streamed(engine: RuleEngine, text: str, pair: tuple[str, str]) -> str:
    async def run() -> str:
        stream = TextStream()
        request = TranslationRequest((text,), *pair)
        await engine.pipeline.translate(request, stream)
        found = ""
        while stream.has_news:
            found += "".join(delta.text for delta in stream.take())
        return found

    return asyncio.run(run())


@PAIRS
def test_an_answer_is_the_same_in_markup(
    source: str, target: str, texts: tuple[str, ...], answers: tuple[str, ...]
) -> None:
    engine = _engine(source, target, texts, answers)
    marked = tuple(f"<p>{text}</p>" for text in texts)
    for format_ in _MARKUP:
        found = _translate(engine, marked, (source, target), format_).result.translations
        assert [each.text for each in found] == [f"<p>{answer}</p>" for answer in answers]


@cache
def _copying(*, copies: bool) -> SpanCopying:
    return SpanCopying(copied=tuple(READABLE) if copies else (), masks=("X1", "X2"))


@pytest.mark.parametrize("copies", [True, False])
def test_spans_are_read_as_the_bundle_says(copies: bool) -> None:
    """A model that copies reads them as they are; another reads masks, in the same number of requests."""
    engine = RuleEngine(byte_bundle(copying=_copying(copies=copies)), lambda text: text.replace("Open", "Öffne"))
    [found] = _translate(engine, ("Open {name} and %s now.",), ("en", "de")).result.translations
    assert found.text == "Öffne {name} and %s now."
    assert engine.read == ["Open {name} and %s now." if copies else "Open X1 and X2 now."]
