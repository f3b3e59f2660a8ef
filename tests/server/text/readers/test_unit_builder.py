import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.text.protection.masked_sentence import unchanged
from server.text.protection.tag_placement import render
from server.text.readers import unit_builder
from server.text.readers.unit_builder import UnitBuilder
from server.text.readers.units import OBJECT, ProtectedSpan, Unit
from server.text.spans import SpanKind
from server.text.unknown_characters import UnknownCharacters

_ASCII = UnknownCharacters(map(chr, range(128)))
_ALL = UnknownCharacters(map(chr, range(0x3000)))
_TAGS = re.compile(r"</?[bi]>|!x")


def _built(*parts: str, collapses_space: bool = False, unknown: UnknownCharacters = _ASCII) -> Unit:
    """Return a unit of texts and tags; `#x` is protected, `!x` a mark."""
    builder = UnitBuilder(unknown, collapses_space=collapses_space)
    for part in parts:
        if part.startswith("</"):
            builder.close(part[2:-1], part)
        elif part.startswith("<"):
            builder.open(part[1:-1], part)
        elif part.startswith("#"):
            builder.protect(part)
        elif part.startswith("!"):
            builder.mark(part)
        else:
            builder.text(part, part)
    assert builder.is_empty is (not parts)
    unit = builder.build()
    assert unit.raw == "".join(parts)
    return unit


def _tags(unit: Unit) -> list[tuple[int, int, str, str, int, bool]]:
    return [(tag.start, tag.end, tag.opening, tag.closing, tag.parent, tag.ends_behind) for tag in unit.tags]


def test_a_unit_may_be_empty() -> None:
    assert _built().text == ""


def test_tags_are_around_their_text_and_have_parents() -> None:
    unit = _built("a", "<b>", "bc", "<i>", "d", "</i>", "</b>", "!x", "e")
    assert unit.text == "abcde"
    assert _tags(unit) == [
        (1, 4, "<b>", "</b>", -1, False),
        (3, 4, "<i>", "</i>", 0, False),
        (4, 4, "!x", "", -1, False),
    ]


def test_tags_without_a_closing_end_with_their_parent_or_behind_the_unit() -> None:
    assert _tags(_built("<b>", "a", "<i>", "b", "</b>", "c")) == [
        (0, 2, "<b>", "</b>", -1, False),
        (1, 2, "<i>", "", 0, True),
    ]
    assert _tags(_built("a", "<b>", "b")) == [(1, 2, "<b>", "", -1, True)]


def test_a_closing_of_another_unit_is_around_all_before_it() -> None:
    assert _tags(_built("a", "<i>", "b", "</i>", "</b>", "c")) == [
        (1, 2, "<i>", "</i>", 1, False),
        (0, 2, "", "</b>", -1, False),
    ]
    assert _tags(_built("<p>", "a", "</b>", "c", "</p>")) == [
        (0, 2, "<p>", "</p>", -1, False),
        (0, 1, "", "</b>", 0, False),
    ]


def test_elements_of_a_sentence_are_protected() -> None:
    unit = _built("a ", "#code", " b ", "https://example.org")
    assert unit.text == f"a {OBJECT} b https://example.org"
    assert unit.protected == (
        ProtectedSpan(2, 3, "#code"),
        ProtectedSpan(6, 25, "https://example.org", SpanKind.ADDRESS, is_readable=True),
    )


@pytest.mark.parametrize(("raw", "kind"), [("`x`", SpanKind.CODE), ("`ж`", SpanKind.UNKNOWN)])
def test_code_is_read_unless_the_model_lacks_a_character(raw: str, kind: SpanKind) -> None:
    builder = UnitBuilder(_ASCII)
    builder.text(raw, raw)
    assert builder.build().protected == (ProtectedSpan(0, 3, raw, kind, kind is SpanKind.CODE),)


def test_white_space_behind_a_tag_moves_into_it_where_it_would_be_doubled() -> None:
    unit = _built("a ", "<b>", " b", "</b>", " c")
    assert (unit.text, unit.tags[0].opening, unit.tags[0].closing) == ("a b c", "<b> ", "</b>")
    unit = _built("a ", "<b>", "b ", "</b>", " c")
    assert (unit.text, unit.tags[0].opening, unit.tags[0].closing) == ("a b c", "<b>", "</b> ")
    unit = _built("<b>", "  a", "</b>")
    assert (unit.text, unit.tags[0].opening) == ("a", "<b>  ")


def test_white_space_is_collapsed_as_html_does() -> None:
    assert _built("\n a \n\t b  ", "c", collapses_space=True).text == "\n a b c"
    assert _built("a ", " \n ", "b", collapses_space=True).text == "a b"
    assert _built("a", " \n ", "b", collapses_space=True).text == "a b"
    assert _built("a \n b").text == "a \n b"
    other = "a\u00a0\u00a0b \u3000c"  # spaces that browsers show as they are
    builder = UnitBuilder(UnknownCharacters(other), collapses_space=True)
    builder.text(other, other)
    assert builder.build().text == other


@pytest.mark.parametrize("word", ["Water", "old house", "„Wort“", "here.", "слово", "12"])
def test_a_raised_mark_behind_a_word_is_not_read(word: str) -> None:
    marks = ["1", "23", "[4]", "(5)", "*", "†", "**", *(["a", "[b]"] if word[-1].isalpha() else [])]
    for mark, behind in itertools.product(marks, [".", " is", ", or", ""]):
        unit = _built(word, "<sup>", mark, "</sup>", *([behind] if behind else []), unknown=_ALL)
        assert unit.text == word + behind
        tags = [(tag.start, tag.end, tag.opening) for tag in unit.tags]
        assert tags == [(len(word), len(word), f"<sup>{mark}</sup>")]


@pytest.mark.parametrize(
    ("word", "name", "content"),
    [
        ("2", "sup", "nd"),
        ("Are you", "b", "?"),
        ("Hello", "i", "."),
        ("1", "b", "2"),
        ("XIX", "sup", "e"),
        ("M", "sup", "lle"),
    ],
)
def test_an_ending_a_sign_or_a_part_of_a_number_is_read(word: str, name: str, content: str) -> None:
    assert _built(word, f"<{name}>", content, f"</{name}>", " x").text == f"{word}{content} x"


@pytest.mark.parametrize(
    ("before", "content", "behind", "span"),
    [
        ("the value of x", "i", " is", "xi"),
        ("T", "max", ", that", "Tmax"),
        ("a or bc", "n+1", "", "bcn+1"),
        ("a word", "low", " is", None),
        ("an x", "i", "y", None),
        ("an x", "of all of it", "", None),
    ],
)
def test_a_variable_with_an_index_is_one_span(before: str, content: str, behind: str, span: str | None) -> None:
    unit = _built(before, "<sub>", content, "</sub>", *([behind] if behind else []), unknown=_ALL)
    found = [(unit.text[each.start : each.end], each.output) for each in unit.protected]
    assert found == ([] if span is None else [(span, f"{span.removesuffix(content)}<sub>{content}</sub>")])
    assert len(unit.tags) == (span is None)


@pytest.mark.parametrize("name", ["sup", "sub"])
@pytest.mark.parametrize(
    ("before", "content", "behind", "span"),
    [
        ("the value of x", "2", " is", "x2"),
        ("2", "10", " of it", None),
        ("10 m", "2", " of it", None),
        ("α", "-1", ", that", "α-1"),
        ("the tea", "2", " is", None),
    ],
)
def test_a_variable_with_an_exponent_is_one_span(
    before: str, content: str, behind: str, span: str | None, name: str
) -> None:
    unit = _built(before, f"<{name}>", content, f"</{name}>", behind, unknown=_ALL)
    found = [(unit.text[each.start : each.end], each.output) for each in unit.protected]
    assert found == ([] if span is None else [(span, f"{before[-1]}<{name}>{content}</{name}>")])


def test_a_mark_in_an_element_that_a_span_fills_stays_in_it() -> None:
    unit = _built("<b>", "{a}", "!m", "</b>", "<i>", "!n", "{b}", "</i>", " c")
    assert [each.output for each in unit.protected] == ["<b>{a}!m</b>", "<i>!n{b}</i>"]


@given(st.data())
def test_tags_and_marks_inside_spans_are_written_in_their_order(data: st.DataObject) -> None:
    """Whatever stands around a span or inside it, a unit that comes back unchanged is its source."""
    pieces = ["{na", "me}", "%", "s", "a ", " b", "<b>", "</b>", "<i>", "</i>", "!x", "#c"]
    unit = _built(*data.draw(st.lists(st.sampled_from(pieces), max_size=9)))
    written = unchanged(unit, (0, len(unit.text)))
    blocks = [] if written.block is None else [written.block]
    found = render(unit, written.text, blocks, written.outputs)
    assert sorted(_TAGS.findall(found)) == sorted(_TAGS.findall(unit.raw))
    assert _TAGS.sub("", found) == _TAGS.sub("", unit.raw)


def test_deeper_tags_than_people_write_are_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_builder, "_MAX_DEPTH", 2)
    unit = _built("<a>", "<b>", "<c>", "x", "</c>", "</b>", "</a>")
    assert _tags(unit) == [
        (0, 1, "<a>", "</a>", -1, False),
        (0, 1, "<b>", "</b>", 0, False),
        (0, 0, "<c>", "", 1, False),
        (1, 1, "</c>", "", 1, False),
    ]


def test_many_strange_closings_are_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_builder, "_MAX_STRAYS", 1)
    assert _tags(_built("x", "</a>", "</b>")) == [(0, 1, "", "</a>", -1, False), (1, 1, "</b>", "", -1, False)]
