import gc
import random
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.interface.errors import InvalidRequest
from server.text.glossary import Glossary, capitalized_like
from tests.linear_time import assert_linear_time
from tests.server.text.glossary_reference import reference_target_terms

# Few characters, so that terms begin, contain and overlap each other: spaces, marks, digits, joiners, other scripts.
_CHARACTERS = [*"aAbB  .-'_1ßİéΣσς東京の", "e\u0301", "\u200d", "aa ", "b a"]
_TERMS = st.lists(st.sampled_from(_CHARACTERS), min_size=1, max_size=5).map("".join).filter(lambda term: term.strip())
_SENTENCES = st.lists(st.sampled_from(_CHARACTERS), max_size=40).map("".join)


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
    assert glossary.target_terms(sentence) == tuple((target,) for target in targets)


def test_the_longest_term_counts() -> None:
    glossary = Glossary({"translation": "A", "translation memory": "B", "memory": "C"})
    assert glossary.target_terms("a translation memory and a translation") == (("B",), ("A",))


def test_two_cases_of_a_word_are_two_terms() -> None:
    glossary = Glossary({"apple": "Apfel", "Apple": "Apple Inc."})
    assert glossary.target_terms("An apple of Apple. An Apple.") == (("Apfel",), ("Apple Inc.",))


def test_in_languages_without_spaces_a_term_may_stand_anywhere() -> None:
    assert Glossary({"東京": "Tokio"}).target_terms("私は東京に住んでいます。") == (("Tokio",),)


def test_letters_that_change_their_number_in_lower_case_do_no_harm() -> None:
    assert Glossary({"istanbul": "x", "tea": "Tee"}).target_terms("İSTANBUL tea") == (("Tee",),)


@given(st.lists(_TERMS, min_size=1, max_size=30), _SENTENCES)
def test_the_search_finds_the_terms_that_a_pattern_of_all_terms_finds(terms: list[str], sentence: str) -> None:
    entries = {term: f"t{index}" for index, term in enumerate(terms)}
    for text in (sentence, sentence.upper(), " ".join((*terms, sentence))):
        found = tuple(target for (target,) in Glossary(entries).target_terms(text))
        assert found == reference_target_terms(entries, text)


def _word(drawn: random.Random, length: int) -> str:
    return "".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=length))


def _seconds(glossary: Glossary, sentences: list[str]) -> float:
    begun = time.process_time()
    for sentence in sentences:
        glossary.target_terms(sentence)
    return time.process_time() - begun


@pytest.mark.parametrize("beginning", ["", "one two three " * 6, "a" * 90])
def test_ten_thousand_terms_cost_a_sentence_hardly_more_than_ten(beginning: str) -> None:
    drawn = random.Random(1)
    sentences = [beginning + " ".join(_word(drawn, 5) for _ in range(20)) for _ in range(300)]
    few, many = (Glossary({beginning + _word(drawn, 5): "x" for _ in range(count)}) for count in (10, 10_000))
    ratios = [_seconds(many, sentences) / _seconds(few, sentences) for _ in range(5)]
    assert sorted(ratios)[2] < 5


def _entries(num_terms: int) -> dict[str, str]:
    drawn = random.Random(2)
    return {_word(drawn, 195): _word(drawn, 10) for _ in range(num_terms)}


def test_the_time_to_read_terms_grows_with_their_number() -> None:
    assert_linear_time(_entries, Glossary, 9_900)


def test_two_megabytes_of_terms_leave_nothing_behind() -> None:
    entries = _entries(9_900)
    sentence = " ".join([*list(entries)[:3], "and more"])
    assert len(Glossary(entries).target_terms(sentence)) == 3
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(2):
            assert len(Glossary(entries).target_terms(sentence)) == 3
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 100_000
    finally:
        tracemalloc.stop()


def test_nested_terms_do_not_make_the_search_quadratic() -> None:
    nested = Glossary({"a" + " a" * length: "x" for length in range(99)} | {" a" * 90 + "b": "y"})
    assert_linear_time(lambda length: "a " * length, nested.target_terms, 10_000)


def test_a_term_may_have_alternatives() -> None:
    glossary = Glossary({"stop": ["Haltestelle", "Haltestellen"], "bus": "Bus"})
    assert glossary.target_terms("A bus stop. A STOP!") == (
        ("Bus",),
        ("Haltestelle", "Haltestellen"),
        ("HALTESTELLE", "HALTESTELLEN"),
    )
    assert glossary.source_terms("A bus stop. A STOP!") == ("bus", "stop")
    for alternatives in ([], ["x"] * 9, ["a", " "], ["a\tb"]):
        with pytest.raises(InvalidRequest, match="glossary must"):
            Glossary({"stop": alternatives})


@pytest.mark.parametrize(
    ("sentence", "translation"),
    [
        ("apple", "Apfel"),
        ("Apple", "Apfel"),
        ("“apple!”", "“Apfel!”"),
        ("APPLE", "APFEL"),
        ("win", "gewinnen"),
        ("Win.", "Gewinnen."),
        ("NASA", "Nasa"),
        ("C", "Ce"),
        ("C++", None),
        ("apple win", None),
        ("an apple", None),
        ("pie", None),
        ("...", None),
        ("", None),
    ],
)
def test_a_sentence_that_is_one_term_has_a_translation(sentence: str, translation: str | None) -> None:
    glossary = Glossary({"apple": "Apfel", "win": ["gewinnen", "siegen"], "NASA": "Nasa", "C": "Ce"})
    term = glossary.only_term(sentence)
    assert (None if term is None else sentence[: term.start] + term.targets[0] + sentence[term.end :]) == translation


def test_a_translation_that_begins_with_a_term_begins_as_its_source_does() -> None:
    assert capitalized_like("House for sale", "gebäude frei", [("gebäude",)]) == "Gebäude frei"
    assert capitalized_like("house for sale", "gebäude frei", [("gebäude",)]) == "gebäude frei"
    assert capitalized_like("House for sale", "ein gebäude", [("gebäude",)]) == "ein gebäude"


@pytest.mark.parametrize("entries", [{}, {"": "b"}, {"a": " "}, {"a" * 201: "b"}, {"a\tb": "c"}])
def test_invalid_glossaries_are_rejected(entries: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="glossary"):
        Glossary(entries)
