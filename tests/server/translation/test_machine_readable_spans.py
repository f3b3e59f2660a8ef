"""Machine-readable spans survive character by character, whatever the model makes of them."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape, unescape
from itertools import islice, product
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from bundle.manifest import SpanCopying
from server.translation.types import TextFormat, Translation
from tests.fakes.echo import make_bundle
from tests.fakes.hostile_engines import HOSTILE, NOTATIONS
from tests.fakes.rule_engine import RuleEngine, byte_bundle, translated

RULES = pytest.mark.parametrize("rule", HOSTILE)
_T = TypeVar("_T")
_MARKUP: tuple[TextFormat, ...] = ("html", "xml")

# Sentences with a place for a span, in scripts with and without blanks between words.
SENTENCES = {
    "en": "Please open {} before you leave.",
    "de": "Bitte öffnen Sie {} vor dem Mittag.",
    "fr": "Veuillez ouvrir {} avant midi.",
    "ru": "Пожалуйста, откройте {} до обеда.",
    "ar": "يرجى فتح {} قبل الظهر.",
    "he": "נא לפתוח את {} לפני הצהריים.",
    "hi": "कृपया दोपहर से पहले {} खोलें।",
    "zh": "请在中午之前打开{}好吗。",
    "ja": "正午までに{}を開いてください。",
    "ko": "정오 전에 {}를 열어 주세요.",
    "th": "กรุณาเปิด {} ก่อนเที่ยง",
}


@cache
def _engine(source: str, target: str) -> RuleEngine:
    return RuleEngine(byte_bundle(source, target))


def _hostile(
    rule: str, texts: Sequence[str], format_: TextFormat = "text", source: str = "en", target: str = "de"
) -> list[Translation]:
    """Return the translations of texts with one of the hostile models."""
    engine = _engine(source, target)
    engine.rule = HOSTILE[rule]
    engine.batches.clear()
    return translated(engine, *texts, format_=format_)


def _is_there_once(span: str, text: str) -> bool:
    """Return whether a text has a span exactly once, and nothing that is only a part of it."""
    return text.count(span) == 1


def _share(items: Iterable[_T], number: int, *, of: int) -> list[_T]:
    """Return the items of one of `of` shares of equal size: each item is tried with many models, not with each."""
    return list(islice(items, number % of, None, of))


@RULES
def test_every_span_comes_back_exactly_once(rule: str) -> None:
    for number, (language, sentence) in enumerate(SENTENCES.items(), list(HOSTILE).index(rule)):
        spans = _share(NOTATIONS.values(), number, of=4)
        texts = [sentence.format(span) for span in spans]
        for span, found in zip(spans, _hostile(rule, texts, "text", language, "en"), strict=True):
            assert _is_there_once(span, found.text), (span, found.text)
            assert span in "".join(each.text for each in found.protected)


@RULES
def test_every_span_comes_back_in_markup_with_all_tags(rule: str) -> None:
    for number, (language, format_) in enumerate(product(("en", "zh", "ar"), _MARKUP), list(HOSTILE).index(rule)):
        notations = (escape(span, quote=False) for span in NOTATIONS.values() if not span.startswith("<%"))
        spans = _share(notations, number, of=3)
        sentence = SENTENCES[language].replace("{}", '<b>{}</b> <i id="1">a</i><br/> ')
        texts = [f"<p>{sentence.format(span)}</p>" for span in spans]
        for span, source, found in zip(spans, texts, _hostile(rule, texts, format_, language), strict=True):
            assert _is_there_once(span, found.text), (span, found.text)
            before, after = etree.fromstring(source), etree.fromstring(found.text)
            assert sorted(each.tag for each in before.iter()) == sorted(each.tag for each in after.iter())


def _cut(span: str, mark: str) -> list[str]:
    """Return a span with a mark between two of its characters, once for each place up to the sixth."""
    return [f"{span[:at]}{mark}{span[at:]}" for at in range(1, min(len(span), 6))]


@RULES
def test_tags_and_comments_inside_a_span_do_not_cut_it(rule: str) -> None:
    visible = ["{name}", "%1$s", "$USER", "AB-123", "x@ab.org", "@anna", "v1.2.3", "##A_B##"]
    marks = ["<!-- -->", "<wbr/>", "<i></i>", "<i><b></b></i>", "</b><b>", "</b><i></i><b>"]
    every = ((span, cut) for span, mark in product(visible, marks) for cut in _cut(span, mark))
    cases = _share(every, list(HOSTILE).index(rule), of=4)
    texts = [f"<p>Ask <b>the {cut} dog</b> now.</p>" for _, cut in cases]
    for (span, _), source, found in zip(cases, texts, _hostile(rule, texts, "html"), strict=True):
        assert _is_there_once(span, _visible(found.text)), (source, found.text)
        assert sorted(_TAG.findall(found.text)) == sorted(_TAG.findall(source))
        etree.fromstring(found.text)


_TAG = re.compile(r"<[^>]*>")


def _visible(text: str) -> str:
    return unescape(_TAG.sub("", text))


TOUCHING = {
    "It is %s°C today.": ["%s°C"],
    "It is 5%s off today.": ["%s"],
    "See (https://example.org/a).": ["https://example.org/a"],
    "Take {a}{b} home.": ["{a}{b}"],
    "Take {a}-{b}/{c} home.": ["{a}", "{b}", "{c}"],
    "Is it {name}'s dog?": ["{name}"],
    "Wait %dms or %d-%d days.": ["%d-%d"],
    "Call me at a@b.org!": ["a@b.org"],
    "Where is {name}?": ["{name}"],
    "{name} is here. {other} is not.": ["{name}", "{other}"],
    "Go to [the page](https://example.org/{id}) now.": ["](https://example.org/{id})"],
    "Use `x` and `y`, **not {z}**.": ["`x`", "`y`", "{z}"],
    "It is 50%% or %d%% more.": ["50%%", "%d"],
    "请打开{file}并按%s键。": ["{file}", "%s"],
    "訪問https://example.org/a後請回覆。": ["https://example.org/a"],
    "<0>The dog</0> and <1/> the {cat}.": ["<0>", "</0>", "<1/>", "{cat}"],
    "Take \"%s\" and '{x}' and „$y“.": ["%s", "{x}", "$y"],
    "- {a}: the dog\n- {b}: the cat": ["{a}", "{b}"],
    "Press <Enter> or <Ctrl+C>.": ["<Enter>"],
    "The `%s' and `%u' of it is %lih %%%c.": ["%s", "%u", "%li", "%%%c"],
    "Use ``a `b` c`` and `x`s.": ["``a `b` c``", "`x`"],
    "The [b]dog[/b] is [url=https://a.org/x]the [i]cat[/i][/url].": ["[b]", "[/b]", "[url=https://a.org/x]", "[/i]"],
    "The same {x} and {x} and {x}.": ["{x}"],
}


@RULES
def test_spans_that_touch_other_things_come_back(rule: str) -> None:
    for (source, spans), found in zip(TOUCHING.items(), _hostile(rule, list(TOUCHING)), strict=True):
        for span in spans:
            assert found.text.count(span) == source.count(span), found.text


@RULES
def test_a_mask_in_the_source_is_a_word_of_the_source(rule: str) -> None:
    [found] = _hostile(rule, ["The X1 and <b>{name}</b> X2 jump over {x}."], "html")
    assert _is_there_once("{name}", found.text)
    assert _is_there_once("{x}", found.text)


def test_spans_that_an_answer_has_in_place_of_their_masks_are_there() -> None:
    answer = "Öffnen Sie AB-1234 und zweimal {x} und {x}."
    engine = RuleEngine(byte_bundle(copying=SpanCopying(masks=("X1", "X2", "X3"))), lambda _: answer)
    [found] = translated(engine, "Open AB-1234 and {x} and {x}.")
    assert found.text == answer
    assert [each.text for each in found.protected] == ["AB-1234", "{x}", "{x}"]
    assert len(engine.read) == 1
    assert "AB-1234" not in engine.read[0], "a mask was read"


@RULES
def test_more_spans_than_masks_are_kept_in_pieces(rule: str) -> None:
    spans = [f"{{name{number}}}" for number in range(30)]
    [found] = _hostile(rule, [" and ".join(f"the {span}" for span in spans)])
    assert all(_is_there_once(span, found.text) for span in spans)


def test_characters_that_the_vocabulary_lacks_are_kept(tmp_path_factory: pytest.TempPathFactory) -> None:
    bundle = make_bundle(tmp_path_factory.mktemp("few"))
    for rule in HOSTILE.values():
        texts = ("the 🎉 dog 日本 is in Жук", "<p>the <b>日本</b> dog</p>")
        first, second = (each.text for each in translated(RuleEngine(bundle, rule), *texts, format_="html"))
        assert [first.count("日本"), second.count("日本"), first.count("🎉"), first.count("Жук")] == [1, 1, 1, 1]


_CUTS = ("", "", "<!-- c -->", "<wbr/>", "<i></i>", "<i><b></b></i>")
_WORDS = (
    *(
        "the",
        "dog",
        "He has",
        "20,000",
        "cats.",
        "Where is",
        "it?",
        "“So”",
        "日本語",
        "です。",
        "Привет",
        "and,",
        "<br/>",
    ),
    *("<img src='a'/>", "<sup>1</sup>", "<code>x y</code>", "<!-- a -->"),
)
_SPANS = ("{n%d}", "%%(n%d)s", "$N%d", "x%d@ab.org", "#t%d", "AB-%d", "https://a.org/%d", "`c%d`", "%%{v%d}", "##N%d##")


@st.composite
def _documents(draw: st.DrawFn, depth: int = 2) -> str:
    """Return a part of a document, with spans that tags cut."""
    parts = []
    for _ in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["word", "span", "span", "element"]))
        if kind == "element" and depth:
            name = draw(st.sampled_from("bu"))
            parts.append(f"<{name}>{draw(_documents(depth - 1))}</{name}>")
        elif kind == "span":
            span = draw(st.sampled_from(_SPANS)) % draw(st.integers(10, 99999))
            at = draw(st.integers(1, len(span) - 1))
            is_around = draw(st.booleans())
            cut = draw(st.sampled_from(_CUTS))
            parts.append(f"<u>{span[:at]}</u>{span[at:]}" if is_around else f"{span[:at]}{cut}{span[at:]}")
        else:
            parts.append(draw(st.sampled_from(_WORDS)))
    return " ".join(parts)


@settings(deadline=None, max_examples=150)
@given(_documents(), st.sampled_from(sorted(HOSTILE)), st.sampled_from(["html", "xml"]))
def test_any_document_keeps_its_spans_and_tags(inside: str, rule: str, format_: TextFormat) -> None:
    source = f"<p>{inside}</p>"
    [found] = _hostile(rule, [source], format_)
    for span in _SPAN.findall(_visible(source)):
        assert _visible(found.text).count(span) == _visible(source).count(span)
    assert sorted(map(str.strip, _TAG.findall(found.text))) == sorted(map(str.strip, _TAG.findall(source)))
    etree.fromstring(found.text)


_SPAN = re.compile("|".join(re.escape(span % 0).replace("0", r"\d+") + r"(?!\d)" for span in _SPANS))
