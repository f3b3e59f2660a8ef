"""Copying is measured with the answers of a model: a span that it garbles is neither shown to it nor a mask."""

import random
from dataclasses import replace
from itertools import chain

import pytest
from babel.localedata import locale_identifiers
from hypothesis import given, settings
from hypothesis import strategies as st

from bundle.manifest import SpanCopying
from library.copying import _FORMS, _filled, _neutral, measured_copying
from server.text.readers.plain_text import read_text
from server.text.readers.units import Unit
from server.text.spans import READABLE, SpanKind
from server.text.unknown_characters import UnknownCharacters
from tests.fakes.rule_engine import RuleEngine, byte_bundle

SENTENCES = [
    f"{who} {what}." for who in ("The dog", "My aunt", "No one", "It") for what in ("sleeps", "is in the garden")
]


def _measured(engine: RuleEngine, sentences: list[str] = SENTENCES) -> SpanCopying:
    return measured_copying(engine, [("en", "de")], sentences)


def test_every_sample_is_one_span_of_its_kind_in_every_sentence() -> None:
    draw = random.Random(1)  # other samples than those of the measurement
    known = UnknownCharacters([*map(chr, range(0x20, 0x7F)), *chain(*_FORMS[SpanKind.SYMBOL])])
    assert set(_FORMS) == READABLE
    for kind, forms in _FORMS.items():
        for form in [form for form in forms for _ in range(20)]:
            sample = _filled(form, draw)
            [unit, *_] = [part for part in read_text(f"Look at {sample} again.", known) if isinstance(part, Unit)]
            assert [(span.output, span.kind, span.is_readable) for span in unit.protected] == [(sample, kind, True)]


@pytest.mark.parametrize("sentences", [SENTENCES, []])
def test_a_model_that_copies_everything_sees_spans_as_they_are(sentences: list[str]) -> None:
    engine = RuleEngine(byte_bundle())
    copying = _measured(engine, sentences)
    assert set(copying.copied) == set(READABLE)
    assert len(set(copying.masks)) == 12
    assert copying.lost_signs == ()
    assert _measured(RuleEngine(byte_bundle()), sentences) == copying  # equal models give equal answers
    large = byte_bundle()
    provenance = large.config.provenance.model_copy(update={"num_parameters": 10**9})
    large_engine = RuleEngine(replace(large, config=large.config.model_copy(update={"provenance": provenance})))
    assert _measured(large_engine, sentences).copied == copying.copied
    assert len(large_engine.read) < len(engine.read) * 0.6 < 1000


@settings(max_examples=8, deadline=None)
@given(st.sampled_from("XZQ[{(14|@/:`"))
def test_what_a_model_garbles_is_in_no_mask_and_in_no_copied_kind(garbled: str) -> None:
    copying = _measured(RuleEngine(byte_bundle(), lambda text: text.replace(garbled, "")))
    assert copying.masks
    assert not [mask for mask in copying.masks if garbled in mask]
    for kind in copying.copied:
        assert sum(garbled in form for form in _FORMS[SpanKind(kind)]) <= 1


@pytest.mark.parametrize("written", ["", "#"])
@pytest.mark.parametrize("sign", ["€", "°", "½"])
def test_a_sign_that_a_model_drops_or_replaces_is_lost(sign: str, written: str) -> None:
    assert _measured(RuleEngine(byte_bundle(), lambda text: text.replace(sign, written))).lost_signs == (sign,)


def test_a_model_that_writes_everything_twice_copies_nothing() -> None:
    copying = _measured(RuleEngine(byte_bundle(), lambda text: f"{text} {text}"))
    assert copying.copied == copying.masks == ()


@pytest.mark.parametrize(
    "tag", ["en", "de", "zh", "ja", "ar", "hi", "th", "xx", *random.Random(2).sample(sorted(locale_identifiers()), 12)]
)
def test_neutral_sentences_exist_in_every_language(tag: str) -> None:
    for elements, join in _neutral(tag):
        assert elements
        assert "\N{OBJECT REPLACEMENT CHARACTER}" in join([*elements, "\N{OBJECT REPLACEMENT CHARACTER}"])
