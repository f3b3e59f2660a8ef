"""Comparison of sentences, and the exchange of what differs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.memory.matching import exchanged, fold, max_edits, score


def _score(one: str, other: str, threshold: int = 50) -> int:
    return score(fold(one).words.split(" "), fold(other).words.split(" "), threshold)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("The red pump is old.", "The red pump is new.", 80),
        ("The red pump is old.", "The red pump is old", 99),
        ("The red pump is old.", "the Red pump is old.", 99),
        ("Press 5 times.", "Press 12 times.", 99),
        ("Open {name} now.", "Open {title} now.", 99),
        ("我们去北京", "我们去上海", 60),
        ("The red pump is old.", "Nothing else matters here.", 0),
    ],
)
def test_a_score_counts_words_and_takes_numbers_and_placeholders_as_equal(one: str, other: str, expected: int) -> None:
    assert _score(one, other) == expected


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12), st.data())
def test_every_sentence_within_the_largest_edit_distance_reaches_the_threshold(
    words: list[str], data: st.DataObject
) -> None:
    threshold = data.draw(st.integers(50, 99))
    other = data.draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12))
    found = score(words, other, threshold)
    assert found == 0 or found >= threshold
    shared = sum(min(words.count(word), other.count(word)) for word in set(words))
    if found:
        assert len(words) - shared <= max_edits(len(words), threshold)


@pytest.mark.parametrize(
    ("stored", "translation", "new", "expected"),
    [
        ("Press 5 times.", "5-mal drücken.", "Press 7 times.", "7-mal drücken."),
        ("It costs 1,500 euros.", "Es kostet 1.500 Euro.", "It costs 20,000 euros.", "Es kostet 20.000 Euro."),
        ("It weighs 1.5 kg.", "Es wiegt 1,5 kg.", "It weighs 2.25 kg.", "Es wiegt 2,25 kg."),
        ("Hello {name}!", "Hallo {name}!", "Hello {user}!", "Hallo {user}!"),
        ("From 5 to 7.", "Von 5 bis 7.", "From 7 to 9.", "Von 7 bis 9."),
        ("Chapter 1", "Kapitel 1", "Chapter 2", "Kapitel 2"),
        ("Add 5 kg now.", "5 kg zugeben.", "Add 1 kg now.", "1 kg zugeben."),
        ("See https://example.org/a now.", "Siehe https://example.org/a.", "See www.b.org now.", "Siehe www.b.org."),
    ],
)
def test_what_differs_is_exchanged(stored: str, translation: str, new: str, expected: str) -> None:
    assert exchanged(fold(new), fold(stored), translation, "en", "de") == expected


@pytest.mark.parametrize(
    ("source", "target", "stored", "translation", "new"),
    [
        ("en", "ru", "Delete 2 files?", "Удалить 2 файла?", "Delete 5 files?"),
        ("en", "de", "5 sheep", "5 Schafe", "1 sheep"),
        ("zh", "en", "共 1 个文件", "1 file in total", "共 5 个文件"),
        ("en", "fr", "the 1st", "le 1er", "the 21st"),
    ],
)
def test_no_number_is_exchanged_where_the_target_counts_otherwise(
    source: str, target: str, stored: str, translation: str, new: str
) -> None:
    assert exchanged(fold(new), fold(stored), translation, source, target) is None
    assert exchanged(fold(stored), fold(stored), translation, source, target) == translation


@pytest.mark.parametrize(
    ("stored", "translation", "new"),
    [
        ("Press 2 times.", "Zweimal drücken.", "Press 7 times."),  # written in words
        ("2 of 2", "2 von 2", "1 of 2"),  # which of both?
        ("Page 5", "Seite 5 von 5", "Page 6"),  # once too often
        ("Page \N{OBJECT REPLACEMENT CHARACTER}", "Seite", "Page 6"),
        ("Page 5", "Seite 5", "Page \N{OBJECT REPLACEMENT CHARACTER}"),
    ],
)
def test_nothing_is_exchanged_where_it_is_ambiguous(stored: str, translation: str, new: str) -> None:
    assert exchanged(fold(new), fold(stored), translation, "en", "de") is None
