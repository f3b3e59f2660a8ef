import numpy as np
import pytest

from model.training.trainer import SubwordSplitter
from model.training.vocabulary import JointVocabulary, best_split, train_vocabulary
from tests.model.training.toy_text import WORDS

TEXT = " ".join(WORDS)


@pytest.fixture(scope="module")
def vocabulary() -> JointVocabulary:
    return train_vocabulary([f"{first} {second}" for first in WORDS for second in WORDS], 300)


def test_split_tokens_are_more_and_have_the_same_text(vocabulary: JointVocabulary) -> None:
    (tokens,) = vocabulary.encode([TEXT])
    split = SubwordSplitter(vocabulary, 1.0).for_batch((1, 2), 256)
    found = split(tokens)
    assert len(found) > len(tokens)
    assert found[-1] == vocabulary.end
    assert vocabulary.decode(found) == TEXT


def test_few_tokens_are_split_with_a_small_probability_and_equal_seeds_split_equally(
    vocabulary: JointVocabulary,
) -> None:
    (tokens,) = vocabulary.encode([" ".join(WORDS * 20)])
    splitter = SubwordSplitter(vocabulary, 0.1)
    found = splitter.for_batch((1, 2), 4096)(tokens)
    assert 1.02 * len(tokens) < len(found) < 1.25 * len(tokens)
    np.testing.assert_array_equal(splitter.for_batch((1, 2), 4096)(tokens), found)
    assert not np.array_equal(splitter.for_batch((1, 3), 4096)(tokens), found)


def test_a_sequence_that_would_be_too_long_is_not_split(vocabulary: JointVocabulary) -> None:
    (tokens,) = vocabulary.encode([TEXT])
    np.testing.assert_array_equal(SubwordSplitter(vocabulary, 1.0).for_batch((1,), len(tokens))(tokens), tokens)


def test_the_best_split_has_the_fewest_pieces_and_of_those_the_most_probable() -> None:
    scores = {"abcd": -1.0, "ab": -2.0, "cd": -2.0, "abc": -9.0, "a": -1.0, "b": -1.0, "c": -1.0, "d": -1.0}
    assert best_split("abcd", scores) == ["ab", "cd"]
    assert best_split("ab", scores) == ["a", "b"]
    assert best_split("x", scores) == []


@pytest.mark.parametrize("split_before", [True, False])
def test_digits_can_be_tokens_of_their_own(split_before: bool) -> None:
    texts = [f"year 1987 {number}" for number in range(1900, 2030)] * 3
    vocabulary = train_vocabulary(texts, 275, split_digits=split_before)
    split = vocabulary if split_before else vocabulary.with_split_digits()
    assert split.numbers == vocabulary.numbers
    (tokens,) = split.encode(["year 1987 2024"])
    pieces = {number: piece for piece, number in vocabulary.numbers.items()}
    assert all(sum(map(str.isdigit, pieces[token])) <= 1 for token in tokens.tolist())
    assert split.decode(tokens) == "year 1987 2024"
    if not split_before:
        assert len(vocabulary.encode(["year 1987 2024"])[0]) < len(tokens)
