"""Parts of a text, and signs that a translation lacks one of them."""

import math

import pytest

from server.text.completeness import doubt, lacks_any, lacks_parts, may_have_parts, parts, shortness

LANGUAGES = ("en", "de")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I am here.", ["I am here."]),
        ("Mr. Smith paid 3.50 dollars.", ["Mr. Smith paid 3.50 dollars."]),
        ("I am here. Go away!", ["I am here.", "Go away!"]),
        ("I came; he left; she stayed.", ["I came", "he left", "she stayed."]),
        ("I came (he left early).", ["I came", "he left early"]),
        ('"Are you here?" "Yes, I am." said the man', ["Are you here?", "Yes, I am.", "said the man"]),
        ("„Bist du hier?“ – „Ja, bin ich.“", ["Bist du hier?", "Ja, bin ich."]),
        ("first line\nsecond line", ["first line", "second line"]),
        ('He said "no" (twice) to me.', ['He said "no" (twice) to me.']),
        ("... !?", []),
    ],
)
def test_parts_are_sentences_and_what_marks_divide(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in parts(text, "en")] == expected


def test_a_text_with_several_parts_has_a_mark_between_them() -> None:
    assert not may_have_parts("I am here.")
    assert not may_have_parts("I am here, and you are there…")
    assert may_have_parts("I am here. Go away!")
    assert may_have_parts("I came (he left early).")


def test_a_missing_part_and_a_far_too_short_answer_are_lacking() -> None:
    assert lacks_parts("I am here. Go away!", "Ich bin hier.", LANGUAGES)
    assert not lacks_parts("I am here. Go away!", "Ich bin hier. Geh weg!", LANGUAGES)
    assert not lacks_parts("I am here. Go away!", "Ich bin hier (geh jetzt weg).", LANGUAGES)
    assert lacks_parts("This sentence has more than forty characters in it.", "Dieser Satz.", LANGUAGES)
    assert not lacks_parts("Thank you very much.", "Danke.", LANGUAGES)


def test_a_chinese_character_is_as_long_as_a_part_of_a_word() -> None:
    source = "The government announced new measures against air pollution in large cities on Tuesday."
    assert not lacks_parts(source, "政府周二宣布了治理大城市空气污染的新措施。", ("en", "zh"))
    assert lacks_parts(source, "政府周二宣布。", ("en", "zh"))
    assert lacks_parts("政府周二宣布了治理大城市空气污染的新措施。", "On Tuesday.", ("zh", "en"))


def test_unlikely_translations_of_several_parts_are_doubtful() -> None:
    source, translation = "I am here today. Go away now!", "Ich bin heute hier. Geh jetzt weg!"
    assert doubt(source, translation, LANGUAGES, -0.2) < 1 < doubt(source, translation, LANGUAGES, -0.4)
    assert doubt(source, translation, LANGUAGES, math.nan) < 1
    assert doubt("I am here today, go away now!", "Ich bin da.", LANGUAGES, -2.0) == 0
    assert doubt(source, "Ich bin heute hier.", LANGUAGES, -0.1) == math.inf


def test_two_long_parts_may_be_less_likely_than_short_ones() -> None:
    source = (
        "The committee met again on Monday morning in the town hall of Berlin. "
        "It has not yet decided about the new building behind the station."
    )
    translation = (
        "Der Ausschuss traf sich am Montagmorgen wieder im Rathaus von Berlin. "
        "Er hat über das neue Gebäude hinter dem Bahnhof noch nicht entschieden."
    )
    assert doubt(source, translation, LANGUAGES, -1.0) < 1 < doubt(source, translation, LANGUAGES, -1.3)


def test_a_part_that_is_much_shorter_than_the_others_is_doubtful() -> None:
    source = "So I put the book away. Tom began to eat his lunch."
    assert doubt(source, "Also lege ich das Buch beiseite. Tom.", LANGUAGES, -0.2) > 1
    assert shortness(source, "Also lege ich das Buch weg. Tom begann zu essen.", LANGUAGES) < 1
    assert shortness(source, "Also lege ich das Buch weg. Tom begann. Er aß.", LANGUAGES) < 1
    assert shortness(source, "Ich lege das. Tom begann.", LANGUAGES) > 1


def test_a_translation_that_has_hardly_anything_of_the_translation_of_a_part_lacks_it() -> None:
    alone = ["The dog sleeps.", "It is raining today."]
    assert not lacks_any("The dog is sleeping. Today it rains.", alone)
    assert lacks_any("The dog is sleeping. Yes.", alone)
    assert not lacks_any("", ["ab", "?"])
