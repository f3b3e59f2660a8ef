"""Every language that a bundle can name, with texts that have more than words: no error, and nothing is lost."""

import asyncio
import re
from dataclasses import replace

import pytest
from babel.localedata import locale_identifiers

from server.interface.decoding_options import DecodingOptions
from server.text.language_detection import Detector
from server.text.language_identifier import load_identifier
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.service import TranslationService
from server.translation.types import TranslationRequest
from tests.fakes.rule_engine import RuleEngine, byte_bundle

TEXTS = (
    "He has 12 books, 3 cats and 1,250,000 ideas.",
    "On 3 May 2021 at 7:45 p.m. (19:45) it was −4 °C.",
    "It costs $1.50, €20 or ¥1,000: 3.75% more.",
    "Write to anna@example.org or see https://example.org/a?b=c#d!",
    "“So?” – «Non» »Nein« „Ja“ 「はい」 ‹a› 'b'",
    "Hello {name}, you have %d new %s and $COUNT files.",
    "12 Main St., Apt. 4B, 10115 Berlin; P.O. Box 7",
    "שלום \u200fעולם\u200e 123, مرحبا \u202b٤٥٦\u202c!",
    "Great 👍🏽 job 🎉, 👩‍💻 & co. ❤️",
    "WHERE IS THE EXIT, PLEASE?",
    "1. First item\n2. Second item\n\n- [ ] a\t| b |",
    "И это ещё не всё: 1 000 руб. в 1990-х гг.",
    "他在2008年8月8日买了3个，花了1,000元。真的吗？是的。",
    "東京は1万人、5月3日（月）です。「はい」。",
    "कीमत ३.७५ रुपये है। ठीक है?",
    "ราคา 1,000 บาท ในปี 2564 ครับ",
    "It's 10 km/h, m², CO₂, ½, Nº 5, §7 and 24/7.",
    "First sentence. Second one? Third! And a very last one…",
    "\ufeff  Leading and \u00a0 odd\u2028spaces\r\n ",
    "a",
)
_OTHER_TAGS = ("deu_Latn", "zho_Hans", "pt-BR", "zh-Hant-TW", "sr_Cyrl", "ace_Arab", "x-klingon", "auto", "?", "en_US")
_REGION = re.compile(r"[a-z]+_(?:[A-Z][a-z]{3}_)?(?:[A-Z]{2}|\d{3})")  # only numbers differ from those of the language
_EVERY = sorted({*load_identifier().labels, *locale_identifiers(), *_OTHER_TAGS})
LANGUAGES = [each for number, each in enumerate(_EVERY) if number % 4 == 0 or not _REGION.fullmatch(each)]
ENGINE = RuleEngine(byte_bundle())
LIMITS = TranslationLimits()
PIPELINE = Pipeline(ENGINE, LIMITS)
OPTIONS = DecodingOptions(if_already_target="translate")


def _translated(texts: tuple[str, ...], source: str, target: str) -> list[str]:
    done = asyncio.run(PIPELINE.translate(TranslationRequest(texts, source, target, OPTIONS)))
    ENGINE.batches.clear()
    return [each.text for each in done.translations]


def _words(text: str) -> str:
    """Return the letters and digits of a text, in their order: separators and blanks are those of the target."""
    return "".join(filter(str.isalnum, text))


@pytest.mark.parametrize("first", sorted({language[:1] for language in LANGUAGES}))
def test_nothing_is_lost_into_and_from_any_language(first: str) -> None:
    """Translate every other text from a language and the rest into it; the other way round for the next language."""
    for number, language in enumerate(LANGUAGES):
        if language.startswith(first):
            texts = TEXTS[:4] if _REGION.fullmatch(language) else TEXTS
            for pair, share in (((language, "en"), number % 2), (("en", language), 1 - number % 2)):
                found = _translated(texts[share::2], *pair)
                assert list(map(_words, found)) == list(map(_words, texts[share::2])), pair


@pytest.mark.parametrize("language", ["zh", "ja", "mt", "ceb", "deu_Latn", "zho_Hans", "pt-BR", "x-klingon"])
def test_a_service_translates_from_and_into_any_language(language: str) -> None:
    for source, target in (("en", language), (language, "en")):
        bundle = byte_bundle(source, target)
        service = TranslationService(Router([Pipeline(RuleEngine(bundle), LIMITS)], pivot=""), Detector(["en"]), LIMITS)
        request = replace(TranslationRequest(TEXTS, "", ""), options=OPTIONS)
        done = asyncio.run(service.translate(request, source, target))
        assert [_words(each.text) for each in done.result.translations] == list(map(_words, TEXTS))
