import tomllib

import pytest

from loadtest.workload.texts.lengths import FILE, length_distribution, length_names


def test_there_are_lengths_for_three_kinds_of_text_and_a_heavy_tail() -> None:
    assert length_names() == ["captions", "heavy-tailed", "news", "tatoeba"]


@pytest.mark.parametrize("name", length_names())
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_distribution_ends_at_one_and_names_its_source(name: str, language: str) -> None:
    distribution = length_distribution(name, language)
    assert distribution.source
    assert len(distribution.cumulative) == 60
    assert distribution.cumulative[-1] == 1.0
    assert 1 <= distribution.num_words(0.0) <= distribution.num_words(1 - 2**-53) <= 60
    assert sum(distribution.share(length) for length in range(1, 61)) == pytest.approx(1)


def test_evenly_spread_chances_give_the_counts_of_the_file() -> None:
    counts = tomllib.loads(FILE.read_text(encoding="utf-8"))["tatoeba"]["en"]
    distribution, total = length_distribution("tatoeba", "en"), sum(counts)
    drawn = [distribution.num_words((place + 0.5) / total) for place in range(total)]
    assert [drawn.count(length) for length in range(1, 61)] == counts


def test_the_heavy_tail_has_a_median_of_twelve_words_and_more_than_one_in_fifty_of_fifty() -> None:
    distribution = length_distribution("heavy-tailed", "en")
    assert distribution.num_words(0.5) == 12
    assert distribution.num_words(0.98) > 50


def test_errors_for_unknown_names_and_languages_list_the_available_ones() -> None:
    with pytest.raises(ValueError, match="unknown lengths poems; available: captions"):
        length_distribution("poems", "en")
    with pytest.raises(ValueError, match="no language fr; available: de, en"):
        length_distribution("news", "fr")
