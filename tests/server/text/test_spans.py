"""Machine-readable spans are found by their form in any script, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.text.spans import SpanKind, find_spans
from server.text.unknown_characters import UnknownCharacters
from tests.fakes.hostile_engines import NOTATIONS

ALL = UnknownCharacters(map(chr, range(0x110000)))
LATIN = UnknownCharacters(map(chr, range(0x250)))
FRAMES = (
    "{}",
    "the {} is",
    "the {}.",
    "is it {}?",
    "({})",
    "“{}”",
    "a\n{}\nb",
    "打开{}好",
    "これは{}。",
    "שם {}, ",
    "{}는",
    "a: {}...",
    "a—{} b",
)
FRAMES_OF_SCRIPTS = ("Откройте «{}».", "افتح {} الآن", "เปิด{}ก่อน")


def _found(text: str, unknown: UnknownCharacters = ALL) -> list[str]:
    return [text[each.start : each.end] for each in find_spans(text, unknown)]


@pytest.mark.parametrize("frame", FRAMES + FRAMES_OF_SCRIPTS)
@pytest.mark.parametrize("span", NOTATIONS.values(), ids=NOTATIONS)
def test_each_notation_is_found_wherever_it_stands(span: str, frame: str) -> None:
    text = frame.format("\0").replace("\0", span)
    if span.startswith("#"):  # a topic may have letters of several scripts
        assert _found(text)[0].startswith(span)
    else:
        assert _found(text) == [span]


@pytest.mark.parametrize(
    ("kind", "samples"),
    [
        (
            SpanKind.ADDRESS,
            "https://a.b ftp://a.b/c file://a www.example.fr mailto:me tel:+49 ab.org a.com/b/4#top a@b.fr",
        ),
        (
            SpanKind.PLACEHOLDER,
            "{name} ${name} %{name} #{name} %name% %(name)s %s %NAME% $name [[name]] __name__ %L1 %%",
        ),
        (SpanKind.PLACEHOLDER, "%0:s %12:-5.2f %1% %|2$d|"),
        (SpanKind.PLACEHOLDER, r"{\an8} {\i0} {\pos(10,20)} {\b1\1c&H00FF&}"),
        (SpanKind.ENTITY, "&lt;b&gt; &lt;/b&gt; &lt;br/&gt;"),
        (SpanKind.PLACEHOLDER, ":name :n :id @:key %1 $(date) {{name}} <name> </name> {n,plural,one{#}other{##}} %@"),
        (SpanKind.CODE, r"`x` ``x`` `a=b;` \alpha{x} \d+ [a-z]+ $x^2$ \u00e9"),
        (SpanKind.ENTITY, "&amp; &#10; &#xa;"),
        (
            SpanKind.PATH,
            r"/usr/lib/python ./a/b ~/.a/b c:\temp d:/a \\a\b src/main/java docs/readme.md data.tar.gz /tmp *.txt .env",
        ),
        (SpanKind.NAME, "@name #topic #Größe owner/name#12"),
        (
            SpanKind.IDENTIFIER,
            "--force max_length X200 AB-1234 mp3 4K v2 1.2.3-rc1 INV-2024-001 C++ .NET x² a::b() 1e-9 a=b x==1.2 10^6 "
            "3.5×10 4×3×2",
        ),
        (SpanKind.SYMBOL, ":) ;-) 🎉 👩‍💻 🇩🇪 ❤️ 1️⃣"),
    ],
)
def test_each_kind_of_span_is_found(kind: SpanKind, samples: str) -> None:
    for sample in samples.split():
        text = f"the {sample} is here"
        assert [(text[each.start : each.end], each.kind) for each in find_spans(text, ALL)] == [(sample, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "I have 3 dogs and 20 cats; it's 50-50, and/or men. Is it so? I'm sure he'd say: \"No.\" (Yes!) – well…",
        "On 22.11.2026 at 7:30 p.m. it was −4 °C; 5 km for $20, €1,000.50 or 12,50 Euro (11 %), i.e. 100% of it.",
        "Leser_innen kommen à 10h30, 18h; 753 B.C., p.es. (m.in.) and so on.",
        "Half-open and so on, e.g. in the U.S.A.; Mr. Smith¹ and his² 2nd, 1990s, 3 Mio. and a 5-year-old: a:b, A & B.",
        "Call +49 30 1234567 or (030) 123456. No. 5, Nr. 7, §12, 10m², 5 km², 1/2, 3/4, 24/7, km/h, he/she, Q&A, R&D.",
        "Die 100%ige 3-Zimmer-Wohnung, 80er-Jahre, bzw. z. B. für 20,– Euro; „So?“ – ‚Ja!‘ «Non» »Nein«.",
        "他在2008年8月8日买了3个，花了1,000元（约50%）。《红楼梦》、“你好”……",
        "東京は1,000万人、3月5日（月）午後7時、約50％。「はい」・『いいえ』〜",
        "2008년 8월 8일, 약 50%의 사람들이 3,000원을 냈다.",
        "В 1990-х гг. цена была 1 000 руб. (50 %), т. е. «дорого» — № 5.",
        "في ٢٢ نوفمبر ٢٠٢٦ كان ٥٠٪ من الناس هنا؛ أليس كذلك؟",
        "१९९० में ५० प्रतिशत लोग यहाँ थे। क्या?",
        "ราคา 1,000 บาท ฯลฯ ๕๐% 840 กม./ชม.",
        "Fiyatlar %17 arttı, %5'i kaldı; 1.250.000 kişi, 4.294.967.295; 10.30.15; 1.2.24, 2024-05-03; word(s), (?!)",
        "Juan -y María- vino. -A pie? -I, 0=no, 1=sí; 3x5, 10 m/s², 5 N·m², “x”-e, ``so'' `to' be, a 100 %ige",
    ],
)
def test_words_numbers_dates_and_signs_are_not_spans(text: str) -> None:
    assert _found(text) == []


@given(st.text(st.one_of(st.sampled_from("{}%$#@&<>`/\\.:-_ a1B²日я€🎉\u200d🇩"), st.characters()), max_size=60))
def test_spans_of_any_text_are_in_their_order_and_do_not_overlap(text: str) -> None:
    position = 0
    for each in find_spans(text, LATIN):
        assert position <= each.start < each.end <= len(text)
        position = each.end


@given(st.text(st.sampled_from("abc жд 日本 🎉,"), max_size=30))
def test_no_model_reads_a_character_that_its_vocabulary_lacks(text: str) -> None:
    left = list(text)
    for each in find_spans(text, LATIN):
        assert each.kind in (SpanKind.UNKNOWN, SpanKind.SYMBOL)
        left[each.start : each.end] = " " * (each.end - each.start)
    assert LATIN.all_known("".join(left))


def test_a_span_with_an_unknown_character_is_not_read() -> None:
    assert [each.kind for each in find_spans("see {имя} or {name}", LATIN)] == [SpanKind.UNKNOWN, SpanKind.PLACEHOLDER]


@pytest.mark.parametrize("span", ["AB-12", "UTF-8", "5G", "978-3-16-148410-0", "pt-BR", "v1.2", "H2O"])
def test_a_word_that_a_hyphen_joins_to_a_span_is_not_part_of_it(span: str) -> None:
    for text in (f"a {span}-Datei", f"ב-{span} ו", f"a {span}..."):
        assert _found(text) == [span]


def test_the_other_half_of_a_compound_is_not_part_of_a_span() -> None:
    for word in ("@media-Regel", "#IoT-Gerät", "mp3-es", "::before-Element", "2.4.1-es", "v1.2-ben"):
        assert _found(f"a {word} b") == [word.partition("-")[0]]


def test_tags_of_subtitles_end_where_words_begin() -> None:
    assert _found(r"{\an8}see the {\i1}old{\i0} sea") == [r"{\an8}", r"{\i1}", r"{\i0}"]


def test_spans_that_touch_are_all_found() -> None:
    for text in ("%(a)s%(b)s", "{a}{b}", "{a}%{b}", "%s%%", "$A$B_C", "{a}€{b}", "`a`{b}"):
        assert "".join(_found(text)) == text
