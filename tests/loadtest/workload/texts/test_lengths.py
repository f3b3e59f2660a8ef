import tomllib

import pytest

from loadtest.workload.texts.lengths import FILE, length_distribution, length_names


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
