import pytest

from server.interface.errors import InvalidRequest
from server.text.glossary import Glossary, capitalized_like, parse_entries


@pytest.mark.parametrize(
    ("sentence", "targets"),
    [
        ("The house is old.", ("Gebäude",)),
        ("Houses and housework.", ()),
        ("House by the river, river by the house", ("Gebäude", "Strom")),
        ("THE HOUSE IS OLD.", ("GEBÄUDE",)),
        ("A house-boat.", ("Gebäude",)),
        ("The White House is open.", ("Weißes Haus",)),
        ("the white house is open.", ("Gebäude",)),
        ("Ask us, or the US.", ("USA",)),
        ("Nothing of that.", ()),
        ("", ()),
    ],
)
def test_terms_are_found_as_words_with_regard_to_case(sentence: str, targets: tuple[str, ...]) -> None:
    glossary = Glossary({"house": "Gebäude", "river": "Strom", "White House": "Weißes Haus", "US": "USA"})
    assert glossary.target_terms(sentence) == targets


def test_the_longest_term_counts() -> None:
    glossary = Glossary({"translation": "A", "translation memory": "B", "memory": "C"})
    assert glossary.target_terms("a translation memory and a translation") == ("B", "A")


def test_two_cases_of_a_word_are_two_terms() -> None:
    glossary = Glossary({"apple": "Apfel", "Apple": "Apple Inc."})
    assert glossary.target_terms("An apple of Apple. An Apple.") == ("Apfel", "Apple Inc.")


def test_in_languages_without_spaces_a_term_may_stand_anywhere() -> None:
    assert Glossary({"東京": "Tokio"}).target_terms("私は東京に住んでいます。") == ("Tokio",)


def test_letters_that_change_their_number_in_lower_case_do_no_harm() -> None:
    assert Glossary({"istanbul": "x", "tea": "Tee"}).target_terms("İSTANBUL tea") == ("Tee",)


def test_a_translation_that_begins_with_a_term_begins_as_its_source_does() -> None:
    assert capitalized_like("House for sale", "gebäude frei", ["gebäude"]) == "Gebäude frei"
    assert capitalized_like("house for sale", "gebäude frei", ["gebäude"]) == "gebäude frei"
    assert capitalized_like("House for sale", "ein gebäude", ["gebäude"]) == "ein gebäude"


def test_entries_are_read_from_tsv_and_csv() -> None:
    assert parse_entries("a\tb\r\n\n c \t d\n", "\t") == {"a": "b", "c": "d"}
    assert parse_entries("\ufeffa\tb\n", "\t") == parse_entries('\ufeff"a",b\n', ",") == {"a": "b"}
    assert parse_entries('a,b\n"c, d","say ""e"""\nf,g,en,de\n', ",") == {"a": "b", "c, d": 'say "e"', "f": "g"}


@pytest.mark.parametrize(
    ("text", "separator", "message"),
    [
        ("a", "\t", "entry 1 of the glossary must be a term and its translation"),
        ("a\tb\nc\t ", "\t", "entry 2 of the glossary must be"),
        ("a\tb\na\tc", "\t", "entry 2 of the glossary repeats a term"),
        ('a,"b', ",", "invalid CSV of glossary entries"),
    ],
)
def test_invalid_entries_are_rejected(text: str, separator: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_entries(text, separator)


@pytest.mark.parametrize("entries", [{}, {"": "b"}, {"a": " "}, {"a" * 201: "b"}, {"a\tb": "c"}])
def test_invalid_glossaries_are_rejected(entries: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="glossary"):
        Glossary(entries)
