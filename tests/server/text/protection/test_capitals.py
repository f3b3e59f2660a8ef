import pytest

from server.text.protection.capitals import (
    in_title,
    is_all_caps,
    is_small_word,
    is_surely_usual,
    lower,
    upper,
    with_first,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NASA", True),
        ("USA", False),
        ("AB", False),
        ("A B", True),
        ("A", False),
        ("GROßE", True),
        ("GROß", False),
        ("ABCd", False),
        ("123", False),
        ("12 ABCD!", True),
    ],
)
def test_enough_capitals_and_nothing_else_are_all_caps(text: str, expected: bool) -> None:
    assert is_all_caps(text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dogs are there.", True),
        ("“The dog barks", True),
        ("the dog barks", False),
        ("The Dog Barks", False),
        ("A Walk under Trees", False),  # a small word of a title
        ("The dog", False),
        ("The\ndogs bark loudly", False),
    ],
)
def test_a_capital_first_and_a_long_word_in_small_letters_are_usual(text: str, expected: bool) -> None:
    assert is_surely_usual(text) is expected


def test_letters_change_as_their_language_does() -> None:
    assert (lower("DIŞ İL", "tr"), upper("dil", "az-AZ")) == ("dış il", "DİL")
    assert (lower("DIS", "en"), upper("dil", "en")) == ("dis", "DIL")
    assert with_first("ijs", upper, "nl") == "IJs"
    assert with_first("ijs", upper, "de") == "Ijs"
    assert with_first("iz", upper, "nl-BE") == "Iz"
    assert with_first("Haus", lower, "de") == "haus"


def test_small_words_of_a_title_stay_small() -> None:
    assert in_title("of", "en", has_small_words=True) == "of"
    assert in_title("of", "en", has_small_words=False) == "Of"
    assert in_title("dog", "en", has_small_words=True) == "Dog"
    assert in_title("7th", "en", has_small_words=False) == "7th"
    assert is_small_word("The", "en-GB")
    assert not is_small_word("the", "ja")
