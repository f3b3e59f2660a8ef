import pytest

from server.text.items.spoken_times import has_spoken_time, in_words, spoken_minutes


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("half past eight", 8 * 60 + 30),
        ("Half past 12", 30),
        ("quarter past one", 75),
        ("quarter to one", 45),
        ("quarter to twelve", 11 * 60 + 45),
        ("halb neun", 8 * 60 + 30),
        ("halb eins", 30),
        ("Viertel nach 7", 7 * 60 + 15),
        ("viertel vor zwölf", 11 * 60 + 45),
        ("half past thirteen", None),
        ("half past 13", None),
        ("halb neun Uhr", None),
        ("noon", None),
    ],
)
def test_minutes_of_twelve_hours(text: str, minutes: int | None) -> None:
    assert spoken_minutes(text) == minutes
    assert has_spoken_time(f"at {text} today") is (minutes is not None or text == "halb neun Uhr")


@pytest.mark.parametrize(
    "text", ["half past", "halb voll", "a quarter to go", "halb 2 Liter", "half past 3%", "half past 1.5"]
)
def test_other_words_are_no_time(text: str) -> None:
    assert not has_spoken_time(text)


@pytest.mark.parametrize(
    ("minutes", "language", "expected"),
    [
        (8 * 60 + 30, "en-GB", "half past eight"),
        (30, "en", "half past twelve"),
        (75, "en", "quarter past one"),
        (45, "en", "quarter to one"),
        (30, "de", "halb eins"),
        (11 * 60 + 45, "de", "Viertel vor zwölf"),
        (30, "fr", "12:30"),
        (75, "fr", "1:15"),
    ],
)
def test_a_quarter_of_an_hour_has_words_in_some_languages(minutes: int, language: str, expected: str) -> None:
    assert in_words(minutes, language) == expected
