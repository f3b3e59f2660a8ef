import html
import re
from functools import partial

import pytest

from server.documents.markup.cues import CueMarkup, Line, lines_of, raw
from server.documents.markup.items import Item, Kind
from server.documents.markup.units import Unit
from server.interface.errors import InvalidDocument

_MARKUP = CueMarkup(re.compile(r"(</?[bi]>|\{[^}]*\})"), ("{",))
_ENTITIES = CueMarkup(re.compile(r"(<b>)"), (), html.unescape, partial(html.escape, quote=False))


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


def test_lines_of_one_speaker_are_one_sentence() -> None:
    assert _shown(" a <i>b</i>\n{x}c ") == [
        ("TEXT", " "), ("TEXT", "a "), ("OPEN", "<i>"), ("TEXT", "b"), ("CLOSE", "</i>"), ("TEXT", "\n"),
        ("MARK", "{x}"), ("TEXT", "c"), ("TEXT", " "),
    ]  # fmt: skip


def test_lines_of_a_dialogue_are_sentences_behind_their_dashes() -> None:
    assert _shown("- a b\n– <i>- c</i>") == [
        ("BREAK", "- "), ("TEXT", "a b"), ("BREAK", "\n"),
        ("BREAK", "– "), ("OPEN", "<i>"), ("BREAK", "- "), ("TEXT", "c"), ("CLOSE", "</i>"), ("BREAK", ""),
    ]  # fmt: skip


def test_a_blank_line_inside_a_cue_ends_a_sentence() -> None:
    assert _shown("a\n \nb") == [("TEXT", "a"), ("TEXT", "\n"), ("BREAK", " \n"), ("TEXT", "b"), ("TEXT", "")]


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
