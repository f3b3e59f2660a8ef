"""Values of numbers and times, whichever notation they have."""

from decimal import Decimal

import pytest

from server.text.items.numbers import readings, value_in
from server.text.items.words import magnitude_at, spelled


@pytest.mark.parametrize(
    ("number", "values"),
    [
        ("7", {"7"}),
        ("1.250", {"1250", "1.25"}),
        ("1,234.56", {"1234.56"}),
        ("1.234,56", {"1234.56"}),
        ("12,50", {"12.5"}),
        ("1 250 000", {"1250000"}),
        ("1'000", {"1000"}),
        ("1,00,000", {"100000"}),
        ("0.750", {"0.75"}),
        ("1" * 61, set()),
    ],
)
def test_a_number_has_the_values_that_its_separators_allow(number: str, values: set[str]) -> None:
    assert readings(number) == set(map(Decimal, values))


@pytest.mark.parametrize(
    ("number", "language", "value"),
    [
        ("1.250", "de", "1250"),
        ("1.250", "en", "1.25"),
        ("20,000", "en", "20000"),
        ("20,000", "de", "20"),
        ("5", "fr", "5"),
    ],
)
def test_a_language_decides_between_two_values(number: str, language: str, value: str) -> None:
    assert value_in(number, language) == Decimal(value)


def test_magnitudes_have_the_words_of_their_language() -> None:
    assert magnitude_at(" billion people", "en") == magnitude_at("Milliarden", "de") == 9
    assert magnitude_at("Billionen", "de") == magnitude_at("trillion.", "en") == 12
    assert magnitude_at("mil millones", "es") == 9
    assert magnitude_at("dogs", "en") == 0


@pytest.mark.parametrize(
    "language", ["en", "de", "fr", "es", "it", "pt", "nl", "pl", "sv", "da", "nb", "fi", "cs", "ro"]
)
def test_numbers_up_to_twelve_have_words(language: str) -> None:
    patterns = [spelled(value, language, is_ordinal=False) for value in range(14)]
    assert all(pattern is not None for pattern in patterns[:13])
    assert patterns[13] is None
    for ordinal_language in ("en", "de", "fr", "es", "it"):
        assert spelled(12, ordinal_language, is_ordinal=True) is not None
