"""Texts of a request that are lines of one text."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from server.interface.client_identity import ClientLimits, limits_of_client
from server.interface.decoding_options import DecodingOptions
from server.interface.errors import InvalidRequest
from server.text.language_detection import Detector
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.router import Router
from server.translation.service import AUTO, TranslationOutcome, TranslationService
from server.translation.types import TranslationRequest
from tests.fakes.echo import EchoFor, EchoGenerator

LINES = ("Where is the railway", "station?", "It is", "here.")


@pytest.fixture
def echo(echo_for: EchoFor) -> EchoGenerator:
    return echo_for("en", "de")


def _translate(
    echo: EchoGenerator,
    texts: Sequence[str],
    limits: TranslationLimits | None = None,
    source: str = "en",
    **options: object,
) -> TranslationOutcome:
    limits = limits or TranslationLimits()
    service = TranslationService(Router([Pipeline(echo, limits)]), Detector(["en", "de"]), limits)
    request = replace(TranslationRequest(tuple(texts), "", "", bypass_cache=True), **options)  # type: ignore[arg-type]
    return asyncio.run(service.translate(request, source, "de"))


def _texts(done: TranslationOutcome) -> list[str]:
    return [translation.text for translation in done.result.translations]


def _num_sentences(done: TranslationOutcome) -> int:
    return done.result.sentence_tokens.num_sentences


def test_lines_of_a_sentence_are_translated_together_and_their_number_is_kept(echo: EchoGenerator) -> None:
    done = _translate(echo, LINES, joins_lines=True)
    assert _num_sentences(done) == 2
    assert _texts(done) == list(LINES)
    assert _num_sentences(_translate(echo, LINES)) == 4


def test_line_breaks_blank_texts_and_white_space_around_texts_stay(echo: EchoGenerator) -> None:
    texts = ["", "  Where is\nthe railway ", "station?\n", "One.\nTwo.", " ", "three", "four"]
    done = _translate(echo, texts, joins_lines=True)
    assert _texts(done) == texts
    assert _num_sentences(done) == 4


def test_a_server_or_a_client_may_join_lines_unless_a_request_says_otherwise(echo: EchoGenerator) -> None:
    joins = TranslationLimits(joins_lines=True)
    assert _num_sentences(_translate(echo, LINES, joins)) == 2
    assert _num_sentences(_translate(echo, LINES, joins, joins_lines=False)) == 4
    token = limits_of_client.set(ClientLimits(joins_lines=True))
    try:
        assert _num_sentences(_translate(echo, LINES)) == 2
    finally:
        limits_of_client.reset(token)


def test_alternatives_and_detected_languages_are_those_of_each_line(echo: EchoGenerator) -> None:
    options = DecodingOptions(num_hypotheses=2, beam_size=2)
    done = _translate(echo, LINES, joins_lines=True, options=options)
    assert all(len(translation.alternatives) == 1 for translation in done.result.translations)
    german = ["Wo ist der", "Bahnhof heute?", "Where is the", "railway station?"]
    done = _translate(echo, german, joins_lines=True, source=AUTO)
    assert [each.language for each in done.detected if each is not None] == ["de", "de", "en", "en"]
    assert done.unchanged == {0, 1}
    assert _texts(done) == german


def test_counts_are_those_of_the_first_line_of_a_sentence(echo: EchoGenerator) -> None:
    done = _translate(echo, LINES, joins_lines=True)
    first, second, *_ = done.result.translations
    assert first.source_tokens > 0
    assert second.source_tokens == 0


def test_whole_texts_and_xml_are_no_lines(echo: EchoGenerator) -> None:
    for options in ({"format": "xml"}, {"options": DecodingOptions(target_prefix="Wo")}):
        with pytest.raises(InvalidRequest, match="`context` lines cannot be combined"):
            _translate(echo, LINES, joins_lines=True, **options)
        done = _translate(echo, LINES, TranslationLimits(joins_lines=True), **options)
        assert len(done.result.translations) == len(LINES)
