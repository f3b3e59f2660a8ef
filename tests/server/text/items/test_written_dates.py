import pytest

from server.text.items.written_dates import is_unusual_date, is_written, localized_date, written_dates, written_parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3 May", True), ("24.12.", True), ("24.12.2024", False), ("12/24", False), ("May 2024", True)],
)
def test_a_written_date_has_a_month_in_words_or_no_year(text: str, expected: bool) -> None:
    assert is_written(text) is expected


@pytest.mark.parametrize(
    ("text", "language", "parts"),
    [
        ("May 3rd, 2024", "en", (3, 5, 2024)),
        ("3. Mai 2024", "de", (3, 5, 2024)),
        ("24.12.", "de", (12, 24)),
        ("5 września", "pl", (5, 9)),
        ("5 foo", "en", (5,)),
    ],
)
def test_the_numbers_of_a_date(text: str, language: str, parts: tuple[int, ...]) -> None:
    assert written_parts(text, language) == parts


@pytest.mark.parametrize(
    ("date", "language", "expected"),
    [
        ("3rd May", "en", False),
        ("3th May", "en", True),
        ("3rd May", "de", True),
        ("31. December", "en", True),
        ("31. Dezember", "de-AT", False),
        ("31 décembre", "fr", False),
        ("31. décembre", "fr", True),
    ],
)
def test_an_ordinal_of_another_language_is_unusual(date: str, language: str, expected: bool) -> None:
    assert is_unusual_date(date, language) is expected


@pytest.mark.parametrize(
    ("item", "target", "expected"),
    [
        ("May 3, 2024", "de", "3. Mai 2024"),
        ("May 3", "de", "3. Mai"),
        ("May 2024", "de", "Mai 2024"),
        ("29 February", "de", "29. Februar"),  # of a leap year
        ("29 February 2023", "de", "29 February 2023"),
        ("February 30", "de", "February 30"),
        ("24.12.", "en", "December 24"),
        ("May", "de", "May"),
        ("3 4 May", "de", "3 4 May"),
        ("3 foo 2024", "de", "3 foo 2024"),
    ],
)
def test_a_date_is_written_in_the_order_of_the_language(item: str, target: str, expected: str) -> None:
    assert localized_date(item, target) == expected


def test_dates_of_a_language_are_found_beside_those_of_others() -> None:
    text = "am 3. Mai 2024, March 5 und 5. toukokuuta"
    assert [match.group() for match in written_dates("de").finditer(text)] == ["3. Mai 2024", "March 5"]
    assert "5. toukokuuta" in [match.group() for match in written_dates("fi").finditer(text)]
