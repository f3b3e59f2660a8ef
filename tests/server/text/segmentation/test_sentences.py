from collections.abc import Callable
from datetime import date
from typing import Literal

import pytest
import sentencex
from babel.dates import format_date
from babel.localedata import locale_identifiers
from hypothesis import example, given
from hypothesis import strategies as st

from server.text.language_identifier import load_identifier
from server.text.segmentation.sentences import Segment, longest_piece, split
from tests.linear_time import assert_linear_time

_ALPHABET = list(
    "aB é.!?;:,\"'()«»“”。！？、，「」\n\r\t\x0b\x1c\x85\u2028\u200b\u00a0-1</s>😀👨\u200d👩ß\u0301\ud800\x00שم"
)


def _within(limit: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= limit


def _joined(segments: list[Segment]) -> str:
    return "".join([each.before + each.text + each.after for each in segments])


def _texts(segments: list[Segment]) -> list[str]:
    return [segment.text for segment in segments]


@given(
    st.text(st.one_of(st.sampled_from(_ALPHABET), st.characters()), max_size=120),
    st.sampled_from(["en", "de", "fr", "nl", "pl", "ja", "ar", "xx", "", "zh-Hant", "\x00"]),
    st.integers(1, 40),
)
@example("\n" * 50, "en", 5)
@example(" ", "en", 5)
def test_joining_untranslated_segments_gives_the_text_again(text: str, language: str, limit: int) -> None:
    segments = split(text, language, _within(limit))
    assert _joined(segments) == text
    assert all(len(segment.text) <= limit for segment in segments)
    assert all(segment.text == segment.text.strip() for segment in segments)
    assert all(segment.text for segment in segments[1:])


def test_sentences_are_found_and_abbreviations_do_not_end_them() -> None:
    text = "Dr. Smith went home. He was tired!  Was he?"
    segments = split(text, "en", _within(100))
    assert segments == [
        Segment("", "Dr. Smith went home.", " "),
        Segment("", "He was tired!", "  "),
        Segment("", "Was he?", ""),
    ]


def test_line_breaks_and_blank_lines_stay_where_they_are() -> None:
    segments = split("  one\r\n\r\n \ttwo\n", "en", _within(100))
    assert segments == [Segment("  ", "one", "\r\n\r\n"), Segment(" \t", "two", "\n")]


def test_blank_texts_come_back_as_they_are() -> None:
    assert split("", "en", _within(10)) == []
    assert split(" \n\t\n", "en", _within(10)) == [Segment(" \n\t\n", "", "")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we left the house early; it was raining", ["we left the house early;", "it was raining"]),
        ("it was raining, so we stayed in the house", ["it was raining,", "so we stayed in the", "house"]),
        ("we stayed at home because it was raining", ["we stayed at home", "because it was raining"]),
        ("some words without any marks or commas", ["some words without any", "marks or commas"]),
        ("it costs 3,000.50 or 4,000.75 or so", ["it costs 3,000.50", "or 4,000.75 or so"]),
        (
            "今天天气很好，我们去公园散步，然后一起回家，再吃一点东西。",
            ["今天天气很好，我们去公园散步，然后一起回家，", "再吃一点东西。"],
        ),
    ],
)
def test_a_long_sentence_is_divided_where_it_reads_most_naturally(text: str, expected: list[str]) -> None:
    assert _texts(split(text, "en", _within(24))) == expected


def test_a_divided_sentence_is_marked() -> None:
    segments = split("one two three four. Five.", "en", _within(10))
    assert [(segment.text, segment.continues) for segment in segments] == [
        ("one two", True),
        ("three", True),
        ("four.", False),
        ("Five.", False),
    ]


def test_text_without_spaces_is_divided_between_graphemes() -> None:
    family = "👨\u200d👩\u200d👧"
    segments = split(family * 6, "en", _within(12))
    assert _texts(segments) == [family * 2] * 3


@pytest.mark.parametrize("text", ["a" * 200_000, "a-b-" * 50_000, "word " * 40_000, "-" * 5000 + "a" * 50_000])
def test_a_long_sentence_is_divided_without_counting_all_of_it_for_every_piece(text: str) -> None:
    num_counted = 0

    def fits(part: str) -> bool:
        nonlocal num_counted
        num_counted += len(part)
        return len(part) <= 100

    segments = split(text, "en", fits)
    assert _joined(segments) == text
    assert all(len(segment.text) in range(96, 101) for segment in segments[:-1])
    assert num_counted < 200 * len(text)


def test_text_that_cannot_be_divided_is_left_to_the_caller() -> None:
    assert _texts(split("abc", "en", lambda _: False)) == ["a", "b", "c"]


class PanicException(BaseException):
    """An exception with the name and the base class of that of Rust extensions."""


@pytest.mark.parametrize(
    "answer", [PanicException("index out of bounds"), UnicodeError("surrogates"), ["lost "], ["", "Hi. Yo."]]
)
def test_a_line_that_sentencex_cannot_split_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, answer: BaseException | list[str]
) -> None:
    def broken(_language: str, _text: str) -> list[str]:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr(sentencex, "segment", broken)
    assert _texts(split("Hi. Yo.", "sv", _within(100))) == ["Hi. Yo."]


def test_an_interrupt_is_not_taken_for_a_broken_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_language: str, _text: str) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(sentencex, "segment", interrupted)
    with pytest.raises(KeyboardInterrupt):
        split("Hi. Yo.", "sv", _within(100))


@pytest.mark.parametrize(
    "unit",
    ["word ", "a", "\n", " ", "«", "(", '"a.\u200b" ', "Hi. ", "it is, and then; ", "你好", "a\u0301", "\ud800 "],
)
@pytest.mark.parametrize("language", ["en", "sv"])
def test_the_time_to_split_grows_with_the_length(unit: str, language: str) -> None:
    def split_and_join(text: str) -> None:
        segments = split(text, language, _within(500))
        assert _joined(segments) == text

    assert_linear_time(lambda length: unit * (length // len(unit)), split_and_join, 40_000)


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("ru", "Это, т. е. дом, наш. Он стар.", ["Это, т. е. дом, наш.", "Он стар."]),
        ("el", "Ο Α. Β. Νίκου ήρθε. Μετά έφυγε.", ["Ο Α. Β. Νίκου ήρθε.", "Μετά έφυγε."]),
        ("hi", "कीमत ३.७५ है। ठीक।", ["कीमत ३.७५ है।", "ठीक।"]),
        ("th", "พบ ดร.สมชายที่นี่", ["พบ ดร.สมชายที่นี่"]),
        ("th", "ระยะทาง 384,400 กม. หรือ 238,855 ไมล์", ["ระยะทาง 384,400 กม. หรือ 238,855 ไมล์"]),
        ("de", '"... dass nichts bleibt." Gut.', ['"... dass nichts bleibt."', "Gut."]),
        ("cs", "... a tak dále. Ano.", ["... a tak dále.", "Ano."]),
        ("hu", "XIV. Lajos uralkodott. Meghalt.", ["XIV. Lajos uralkodott.", "Meghalt."]),
        ("ar", "وصل د. أحمد مساء. ثم غادر.", ["وصل د. أحمد مساء.", "ثم غادر."]),
    ],
)
def test_a_full_stop_inside_a_sentence_of_a_language_without_rules_does_not_end_it(
    language: str, text: str, expected: list[str]
) -> None:
    assert _texts(split(text, language, _within(100))) == expected


@pytest.mark.parametrize(
    ("text", "limit", "piece"),
    [
        ("it rained, so we left", 15, "it rained,"),
        ("a, bcdefghi jklm", 14, "a, bcdefghi "),  # the clause is shorter than a quarter
        ("abc, efgh ijkl mn", 16, "abc,"),  # exactly a quarter
        ("abc, efgh ijklmno pq", 19, "abc,"),
        ("abc, efgh ijklmno pqr", 20, "abc, efgh ijklmno "),
        ("we stayed because it rained", 20, "we stayed "),
        ("one two three", 9, "one two "),
        ("abcdefgh", 3, "abc"),
        ("3,000.50", 5, "3,000"),
        ("今天，天气好", 4, "今天，"),
        ("ab\U0001f1e9\U0001f1ea\U0001f1e9\U0001f1ea", 5, "ab\U0001f1e9\U0001f1ea"),
    ],
)
def test_a_piece_ends_at_a_clause_a_conjunction_a_space_or_a_grapheme(text: str, limit: int, piece: str) -> None:
    assert text[: longest_piece(text, lambda part: len(part) <= limit, "en")] == piece


def test_a_piece_has_a_character_though_nothing_fits() -> None:
    assert longest_piece("abc", lambda _: False, "en") == 1


@pytest.mark.parametrize("style", ["short", "medium", "long", "full"])
def test_a_date_does_not_end_a_sentence_in_any_language(style: Literal["short", "medium", "long", "full"]) -> None:
    days = date(2021, 5, 13), date(2024, 11, 3), date(1999, 9, 30), date(2010, 1, 1)
    for language in set(load_identifier().labels).intersection(locale_identifiers()):
        for day in days:
            text = f"Ab {format_date(day, style, locale=language)} cd ef."
            assert [each.text for each in split(text, language, lambda _: True)] == [text], language
