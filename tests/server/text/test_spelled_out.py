"""Abbreviations in full, and the positions of both forms."""

import pytest

from server.text.spelled_out import spelled_out


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Tee inkl. Kuchen, u. a. mit Obst.", "Tee einschließlich Kuchen, unter anderem mit Obst."),
        ("U. a. gibt es Tee.", "Unter anderem gibt es Tee."),
        ("Es gibt u.a. Tee (inkl. Kuchen).", "Es gibt unter anderem Tee (einschließlich Kuchen)."),
        ("Er wiegt ca. 30 kg.", "Er wiegt ungefähr 30 kg."),
        ("Er wiegt ca. dreißig Kilo.", "Er wiegt ca. dreißig Kilo."),
        ("Es gibt Tee u. a.", "Es gibt Tee u. a."),
        ("Es gibt Tee u. a. (auch grünen).", "Es gibt Tee u. a. (auch grünen)."),
        ("Min. 3 Tage, in 5 min. 30 Meter.", "Mindestens 3 Tage, in 5 min. 30 Meter."),
        ("Es gibt Tee u. a. m. und Kuchen.", "Es gibt Tee u. a. m. und Kuchen."),
        ("Auf www.inkl. steht x.ca. 3", "Auf www.inkl. steht x.ca. 3"),
        ("INKL. KUCHEN", "INKL. KUCHEN"),
        ("Tee z. B. mit Kuchen usw. und Dr. Klein", "Tee z. B. mit Kuchen usw. und Dr. Klein"),
    ],
)
def test_an_abbreviation_is_spelled_out_where_the_sentence_goes_on(text: str, read: str) -> None:
    assert spelled_out("de").in_full(text) == spelled_out("de-CH").in_full(text) == read
    assert spelled_out("").in_full(text) == spelled_out("fr").in_full(text) == text


def test_english_initials_keep_their_capitals() -> None:
    text = "The U.S. Army was on Mt. Hood, approx. 5 miles away. It was in the U.S."
    read = "The US Army was on Mount Hood, about 5 miles away. It was in the U.S."
    assert spelled_out("en-GB").in_full(text) == read


def test_ranges_are_those_of_the_text_with_its_abbreviations() -> None:
    text = "A u. a. B inkl. C."
    read = spelled_out("de").in_full(text)
    words = ["A", "unter", "anderem", "B", "einschließ", "lich", "C", "."]
    found = spelled_out("de").ranges_in(text, [(read.index(word), read.index(word) + len(word)) for word in words])
    assert [text[start:end] for start, end in found] == ["A", "u. a", "u. a", "B", "inkl", "inkl", "C", "."]
    ends = [(0, 0), (len(read), len(read))]
    assert spelled_out("de").ranges_in(text, ends) == [(0, 0), (len(text), len(text))]
    assert spelled_out("en").ranges_in(text, [(0, 5)]) == spelled_out("de").ranges_in("A B.", [(0, 5)]) == [(0, 5)]
