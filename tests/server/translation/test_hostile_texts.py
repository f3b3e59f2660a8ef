"""Hostile texts through the whole pipeline: nothing is lost, in time that grows with the length."""

import asyncio
import re
from collections.abc import Sequence
from functools import cache
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.interface.decoding_options import DecodingOptions
from server.translation.limits import TranslationLimits
from server.translation.pipeline import Pipeline
from server.translation.types import TextFormat, TranslationRequest
from tests.fakes.hostile_engines import HOSTILE
from tests.fakes.rule_engine import RuleEngine, byte_bundle
from tests.linear_time import assert_linear_time

COPYING = Pipeline(RuleEngine(byte_bundle(max_tokens=500)), TranslationLimits())
LOSING = Pipeline(RuleEngine(byte_bundle(max_tokens=500), HOSTILE["drops masks"]), TranslationLimits())
OPTIONS = DecodingOptions(if_already_target="translate")
_TAG = re.compile(r"<[^<>]*>")


def _translated(pipeline: Pipeline, text: str, format_: TextFormat) -> str:
    request = TranslationRequest((text,), "en", "de", OPTIONS, format=format_)
    [found] = asyncio.run(pipeline.translate(request)).translations
    return found.text


def _nested(depth: int) -> Sequence[str]:
    names = ["b", "i", "u"]
    opened = "".join(f"<{names[level % 3]}>" for level in range(depth))
    closed = "".join(f"</{names[level % 3]}>" for level in reversed(range(depth)))
    inside = "".join(f"<{names[level % 3]}>The {{x}} dog. " for level in range(depth))
    return f"<p>{opened}The dog.{closed} So it is.</p>", f"<p>{inside}{closed}</p>", f"<p>{opened}Go %s!{closed}</p>"


@pytest.mark.parametrize("pipeline", [COPYING, LOSING])
@pytest.mark.parametrize("format_", ["html", "xml", "text"])
def test_tags_around_short_sentences_are_kept_at_any_depth(pipeline: Pipeline, format_: TextFormat) -> None:
    for text in _nested(240):
        found = _translated(pipeline, text, format_)
        assert sorted(_TAG.findall(found)) == sorted(_TAG.findall(text))
        assert found.count("{x}") == text.count("{x}")


_ANYTHING = st.text(
    st.one_of(
        st.sampled_from("\ufffc\x1f\x00\u2028\u200f\u202e\u00ad\ufeff\ud800 \n\t{}<>&`*_[]()|\\%$#@:/.'\"-0aB字กא"),
        st.characters(),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=100)
@given(_ANYTHING, st.sampled_from(["text", "html"]), st.sampled_from(sorted(HOSTILE)))
def test_any_characters_come_back_from_a_model_that_copies_and_none_is_an_error(
    text: str, format_: TextFormat, rule: str
) -> None:
    source = text if format_ == "text" else f"<p>{escape(text)}</p>"
    found = _translated(COPYING, source, format_)
    assert list(filter(str.isalnum, found)) == list(filter(str.isalnum, source))
    assert found.count("\ufffc") == source.count("\ufffc")
    _translated(_pipeline(rule), source, format_)


def test_a_model_may_write_the_characters_that_mean_something_in_a_unit() -> None:
    model = Pipeline(RuleEngine(COPYING.bundle, lambda text: f"\ufffc{text}\x1f"), TranslationLimits())
    for text in ("The dog is.", "The dog is. The {x} is.", "<b>The</b> dog"):
        assert "".join(_translated(model, text, "html").split()).strip("\ufffc\x1f").count("{x}") == text.count("{x}")


@cache
def _pipeline(rule: str) -> Pipeline:
    return Pipeline(RuleEngine(COPYING.bundle, HOSTILE[rule]), TranslationLimits())


@pytest.mark.parametrize("format_", ["text", "html"])
@pytest.mark.parametrize("sign", ["{", "{}", "`", "|", "%", "<", "<a>", "&", "[", "_", "\\", "#"])
def test_signs_without_words_come_back_in_time_that_grows_with_their_number(sign: str, format_: TextFormat) -> None:
    def translate(text: str) -> None:
        assert _TAG.sub("", _translated(COPYING, text, format_)).count("dog") == 1

    assert_linear_time(lambda length: "The dog " + sign * (length // len(sign)) + " is.", translate, 24_000)


@pytest.mark.parametrize(
    "part", ["The {x} dog. ", "<b>The</b> dog ", "a %s b `c` ", "日本{x}。", "<i>{a}", "20,000 dogs. "]
)
@pytest.mark.parametrize("pipeline", [COPYING, LOSING], ids=["copying", "losing"])
def test_a_long_text_of_spans_and_tags_is_translated_in_time_that_grows_with_it(part: str, pipeline: Pipeline) -> None:
    assert_linear_time(
        lambda length: part * (length // len(part)), lambda text: _translated(pipeline, text, "html"), 12_000
    )
