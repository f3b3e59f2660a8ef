import fnmatch
import tomllib
from dataclasses import astuple
from pathlib import Path

import pytest
from babel import Locale
from hypothesis import given
from hypothesis import strategies as st

from server.text.language_tables import Abbreviations, LanguageTable, languages, table_of
from server.text.segmentation.boundaries import rules_of
from server.text.segmentation.sentences import longest_piece

ROOT = Path(__file__).resolve().parents[3]
SEGMENTED = tuple(language for language in languages() if table_of(language).abbreviations is not None)


def _abbreviations(language: str) -> Abbreviations:
    found = table_of(language).abbreviations
    assert found is not None
    return found


def _word_lists(content: object) -> list[tuple[str, ...]]:
    """Return the lists of words in nested tuples, which end in words and truth values."""
    if not isinstance(content, tuple):
        return []
    if content and all(isinstance(each, str) for each in content):
        return [content]
    return [words for each in content for words in _word_lists(each)]


@pytest.mark.parametrize("language", languages())
def test_every_table_is_named_by_its_language_and_has_every_word_once(language: str) -> None:
    assert Locale.parse(language).language == language
    lists = _word_lists(astuple(table_of(language)))
    assert lists
    for words in lists:
        assert len(set(words)) == len(words), sorted(word for word in words if words.count(word) > 1)


@pytest.mark.parametrize("language", languages())
def test_words_that_match_any_case_are_in_small_letters(language: str) -> None:
    table = table_of(language)
    for word in (*table.starters, *table.conjunctions, *table.endings, *table.second_person, *table.sentences.sounds):
        assert word == word.lower()


@pytest.mark.parametrize("language", SEGMENTED)
def test_an_abbreviation_has_one_effect_and_no_last_full_stop(language: str) -> None:
    table = _abbreviations(language)
    assert set(table.inside).isdisjoint(table.either)
    assert set(table.last).isdisjoint((*table.inside, *table.either, *table.numbered))
    for word in (*table.inside, *table.last, *table.either, *table.numbered):
        assert not word.endswith("."), word


@pytest.mark.parametrize("language", SEGMENTED)
def test_each_kind_of_abbreviation_has_its_effect_in_every_language(language: str) -> None:
    rules = rules_of(language)
    assert rules is not None
    table = _abbreviations(language)
    midday = set(table_of(language).sentences.midday)
    starter = table_of(language).starters[0].capitalize()

    def num_sentences(text: str) -> int:
        return len(list(rules.sentences(text)))

    for word in table.inside:
        assert num_sentences(f"xa xe {word}. {starter} xi") == 1, word
    for word in table.last:
        assert num_sentences(f"xa xe {word}. Xabo xi") == 2, word
    for word in set(table.either) - midday:
        assert num_sentences(f"xa xe {word}. Xabo xi") == 1, word
        assert num_sentences(f"xa xe {word}. {starter} xi") == 2, word
    for word in table.numbered:
        assert num_sentences(f"xa xe {word}. 7 xi") == 1, word


@pytest.mark.parametrize("language", [language for language in languages() if table_of(language).conjunctions])
def test_a_long_sentence_is_divided_before_any_conjunction_of_its_language(language: str) -> None:
    for word in table_of(language).conjunctions:
        text = f"xabo xebo {word} xibo xobo"
        assert text[: longest_piece(text, lambda piece: len(piece) < 22, language)] == "xabo xebo "
        assert longest_piece(text, lambda piece: len(piece) < 22, "") > len("xabo xebo ")


@given(st.one_of(st.text(), st.sampled_from(languages()).map(lambda code: f"../data/{code}"), st.just("en.toml")))
def test_a_text_that_names_no_language_with_a_file_has_an_empty_table(name: str) -> None:
    is_known = name.partition("-")[0].lower() in languages()
    assert (table_of(name) == LanguageTable()) != is_known


@pytest.mark.parametrize("language", languages())
def test_regions_scripts_and_capitals_have_the_table_of_their_language(language: str) -> None:
    assert table_of(language) is table_of(f"{language.upper()}-Latn-XX")


def test_every_table_is_in_the_wheel() -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    packed = patterns["package-data"]["server"]
    for language in languages():
        assert any(fnmatch.fnmatchcase(f"text/data/{language}.toml", pattern) for pattern in packed)
