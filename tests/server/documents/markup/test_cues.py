import html
import re
from functools import partial

import pytest

from server.documents.markup.cues import CueMarkup, Line, lines_of, raw
from server.documents.markup.items import Item, Kind, Unit, find_units
from server.interface.errors import InvalidDocument

_MARKUP = CueMarkup(re.compile(r"(</?(?:[bi]|v [^>]*)>|<[0-9:.]+>|\{[^}]*\})"))
_ENTITIES = CueMarkup(re.compile(r"(<b>)"), html.unescape, partial(html.escape, quote=False))


def _items(text: str, markup: CueMarkup = _MARKUP) -> list[Item]:
    return list(markup.items(lines_of(text), 7))


def _shown(text: str) -> list[tuple[str, str]]:
    found = _items(text)
    assert "".join(item.raw for item in found) == text
    return [(item.kind.name, item.raw) for item in found]


def test_lines_have_their_ends() -> None:
    assert lines_of("a\r\nb\n\rc") == [Line("a", "\r\n"), Line("b", "\n"), Line("", "\r"), Line("c", "")]
    assert raw(lines_of("a\r\nb\n\rc")) == "a\r\nb\n\rc"
    assert [line.is_blank for line in lines_of(" \t\nx\n")] == [True, False, True]


def test_a_cue_without_a_letter_is_one_break() -> None:
    assert _shown("42\n<i>!</i>") == [("BREAK", "42\n<i>!</i>")]


def _sentences(text: str) -> list[str]:
    """The texts of a cue that are translated together, with a slash for each line end in them."""
    items = _items(text)
    assert "".join(item.raw for item in items) == text
    return ["".join("/" if each.raw == "\n" else each.text for each in unit.items) for unit in find_units(items)]


def test_lines_of_one_sentence_are_one_text() -> None:
    assert _shown(" a <i>b</i>\n{x}c ") == [
        ("TEXT", " "), ("TEXT", "a "), ("OPEN", "<i>"), ("TEXT", "b"), ("CLOSE", "</i>"), ("TEXT", "\n"),
        ("ATOM", "{x}"), ("TEXT", "c"), ("BREAK", " "),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "Where is it?",
        "No!",
        "It rained.",
        "Все ушли.",
        "هو هنا.",
        "他走了。",
        "वह गया।",
        "Really?”",
        "(laughs.)",
        "<i>Gone.</i>",
        "* la la *",
        "but I was--",
        "♪ la la ♪",
    ],
)
def test_a_line_that_ends_a_sentence_is_a_text_of_its_own(line: str) -> None:
    assert len(_sentences(f"{line}\nIt is late now")) == 2


@pytest.mark.parametrize(
    "line",
    [
        "JOHN: stay", "Dr. Ada Lovelace: stay", "MAN #2 (on phone): stay", "汤姆：留下", "- stay", "–stay", ">> stay",
        "(door slams)", "[music]", "♪ stay with me", "# stay with me", "<i>- stay</i>", "<v John>stay", "（笑）",
        "* laughs *", "• stay",
    ],
)  # fmt: skip
def test_a_line_that_begins_with_a_speaker_or_a_sound_is_a_text_of_its_own(line: str) -> None:
    assert len(_sentences(f"we were going home\n{line}")) == 2


@pytest.mark.parametrize(
    "text",
    [
        "we were going\nto the station", "she was about...\nto leave", "it weighs approx.\nten pounds",
        "it is now\n10:30 at night",
        "we met Dr.\nJones there", "she lives on St.\nJohn Street",
        "one thing is clear:\nwe stay", "it fell to\n-5 degrees", "we are\n#1 today", "go to <i>the\nold</i> house",
    ],
)  # fmt: skip
def test_a_sentence_goes_on_in_the_next_line(text: str) -> None:
    assert len(_sentences(text)) == 1


def test_quoted_lines_are_those_of_two_speakers() -> None:
    assert _sentences("«stay here»\n«not me»") == ["«stay here»", "«not me»"]
    assert len(_sentences("he said “stay\nhere” to me")) == 1


def test_a_line_may_begin_with_any_word_that_is_no_mark_of_a_speaker() -> None:
    items = _items('he said to me\n"come here"')
    unit = Unit(items, 0, len(items))
    assert _MARKUP.wrapped(unit, 'HE SAID TO ME "COME HERE"') == 'HE SAID TO ME\n"COME HERE"'
    assert _MARKUP.wrapped(unit, "HE SAID TO ME - COME HERE") == "HE SAID TO ME -\nCOME HERE"


def test_what_stands_alone_in_a_line_does_not_join_the_next() -> None:
    assert _sentences("(sighs)\nwhat now") == ["(sighs)", "what now"]
    assert _sentences("JOHN:\nwhat now") == ["JOHN:", "what now"]
    assert _sentences("it is late. we\ngo home. you\nstay") == ["it is late. we/go home. you/stay"]
    assert _sentences("we go home.\nYou stay\nhere") == ["we go home.", "You stay/here"]


def test_marks_in_front_of_a_speaker_stay_where_they_are() -> None:
    assert _shown("- a b\n– <i>- c</i>\n>> d") == [
        ("BREAK", "- "), ("TEXT", "a b"), ("BREAK", "\n"),
        ("BREAK", "– "), ("OPEN", "<i>"), ("BREAK", "- "), ("TEXT", "c"), ("CLOSE", "</i>"), ("BREAK", "\n"),
        ("BREAK", ">> "), ("TEXT", "d"), ("BREAK", ""),
    ]  # fmt: skip


def _kinds(text: str) -> list[str]:
    return [item.kind.name for item in _items(text) if item.raw.startswith(("{", "<"))]


def test_overrides_are_pairs_with_what_takes_them_back() -> None:
    assert _kinds(r"a {\i1}b{\i0} c {\b700}d{\b0} e") == ["OPEN", "CLOSE", "OPEN", "CLOSE"]
    assert _kinds(r"a {\c&H0000FF&\b1}b{\r} c {\fnArial}d{\fn} e") == ["OPEN", "CLOSE", "OPEN", "CLOSE"]
    assert _kinds(r"a {\i1}b {\b1}c{\b0} d{\i0} e") == ["OPEN", "OPEN", "CLOSE", "CLOSE"]
    assert _kinds(r"a {\i1}b {\b1}c{\i0} d{\b0} e") == ["OPEN", "ATOM", "CLOSE", "ATOM"]
    assert _kinds(r"a {\c&HFF&}b {\an8}c {\i0}d {note} e") == ["ATOM", "ATOM", "ATOM", "ATOM"]


def test_times_of_words_stand_for_themselves_and_those_of_syllables_leave_the_word_whole() -> None:
    assert _kinds(r"{\k20}ka{\k30}ra {\k10}oke <00:01.000>now") == ["ATOM", "MARK", "ATOM", "ATOM"]
    assert _sentences(r"good mor{\k30}ning all") == [r"good morning all"]


def test_times_stay_in_their_order_wherever_their_words_go() -> None:
    items = _items("a <00:01.000>b <00:02.000>c")
    written = "<00:02.000>C <00:01.000>B A"
    assert _MARKUP.wrapped(Unit(items, 0, len(items)), written) == "<00:01.000>C <00:02.000>B A"


def test_shapes_are_no_text_and_the_text_around_them_is() -> None:
    assert _sentences(r"{\pos(1,2)\p1}m 0 0 l 9 9{\p0}a house {\p2}m 1 1 b 2{\p0} here") == ["a house ", " here"]


def test_a_blank_line_inside_a_cue_ends_a_sentence() -> None:
    assert _shown("a\n \n- b") == [
        ("TEXT", "a"), ("TEXT", "\n"), ("BREAK", " \n"), ("BREAK", "- "), ("TEXT", "b"), ("BREAK", "")
    ]  # fmt: skip


def test_entities_are_read_where_a_format_has_them() -> None:
    assert _items("a &amp; b", _ENTITIES)[0].text == "a & b"
    assert _items("a &amp; b")[0].text == "a &amp; b"
    assert _ENTITIES.write("a & <b>") == "a &amp; &lt;b&gt;"
    assert _MARKUP.write("a & <b>") == "a & <b>"


def test_the_length_of_a_cue_and_the_depth_of_its_tags_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.documents.markup.cues._MAX_CUE_CHARACTERS", 5)
    assert _items("abc\nd")
    with pytest.raises(InvalidDocument, match=r"may have 5 characters. The cue in line 7 has 6"):
        _items("abc\nde")
    monkeypatch.undo()
    monkeypatch.setattr("server.documents.markup.cues._MAX_DEPTH", 2)
    assert _items("<i><b>a</b></i><i><b>b</b></i>")
    assert _items("</i></i></i><i><b>a")
    with pytest.raises(InvalidDocument, match=r"nested 2 deep. The cue in line 7 has more"):
        _items("<i><b>a</b><b>c<i>")


def test_a_translation_is_divided_like_its_source() -> None:
    items = _items("aa bb\ncc dd")
    unit = Unit(items, 0, len(items))
    assert _MARKUP.wrapped(unit, "one two <b>three four") == "one two\n<b>three four"
    single = _items("aa bb")
    assert _MARKUP.wrapped(Unit(single, 0, len(single)), "one two") == "one two"


def test_a_line_does_not_end_inside_a_tag() -> None:
    items = _items("aa\nbb")
    assert _MARKUP.wrapped(Unit(items, 0, len(items)), "{a b}one two") == "{a b}one\ntwo"
    assert items[0].kind is Kind.TEXT
