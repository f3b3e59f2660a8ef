import numpy as np
import pytest
from numpy.typing import NDArray

from server.engine.decoding.candidate_selection import (
    MinNewTokens,
    NoRepeatedNgram,
    RepetitionPenalty,
    SuppressedPhrases,
    SuppressedTokens,
    processors_for,
)
from tests.fakes.sentence_params import sentence_params

END = 0


def _ruled_out(scores: NDArray[np.float32]) -> list[list[int]]:
    return [np.flatnonzero(np.isneginf(row)).tolist() for row in scores]


def _applied(processor: object, *prefixes: list[int]) -> list[list[int]]:
    """Return the tokens that are ruled out behind each prefix."""
    scores = np.zeros((len(prefixes), 6), np.float32)
    processor.apply(scores, np.array(prefixes, np.int32).reshape(len(prefixes), -1))  # type: ignore[attr-defined]
    return _ruled_out(scores)


def test_a_penalty_applies_once_to_each_token_of_the_prefix() -> None:
    scores = np.array([[4.0, -4.0, 0.0, 2.0], [4.0, -4.0, 1.0, 2.0]], np.float32)
    RepetitionPenalty(np.float32(2)).apply(scores, np.array([[0, 1, 0], [2, 2, 2]], np.int32))
    assert scores.tolist() == [[2.0, -8.0, 0.0, 2.0], [4.0, -4.0, 0.5, 2.0]]


@pytest.mark.parametrize(
    ("size", "prefixes", "expected"),
    [
        (2, [[1, 2, 1], [1, 2, 3]], [[2], []]),
        (2, [[1, 1]], [[1]]),
        (2, [[1]], [[]]),
        (3, [[1, 2, 3, 1, 2], [1, 2, 3, 2, 1]], [[3], []]),
        (1, [[4, 2]], [[2, 4]]),
        (2, [[1, 2, 1, 3, 1]], [[2, 3]]),
    ],
)
def test_no_sequence_occurs_twice(size: int, prefixes: list[list[int]], expected: list[list[int]]) -> None:
    assert _applied(NoRepeatedNgram(size), *prefixes) == expected


@pytest.mark.parametrize(
    ("phrases", "prefixes", "expected"),
    [
        (((3,),), [[1], [2]], [[3], [3]]),
        (((1, 2), (2, 2)), [[4, 1], [4, 2]], [[2], [2]]),
        (((1, 2, 3),), [[2], [1]], [[], []]),
        (((1, 2, 3),), [[1, 2], [2, 1]], [[3], []]),
        (((1, 2, 3),), [[0, 1, 2]], [[3]]),
    ],
)
def test_the_last_token_of_a_phrase_does_not_follow_the_others(
    phrases: tuple[tuple[int, ...], ...], prefixes: list[list[int]], expected: list[list[int]]
) -> None:
    assert _applied(SuppressedPhrases(phrases), *prefixes) == expected


def test_tokens_are_ruled_out_in_every_row_and_the_end_before_its_time() -> None:
    assert _applied(SuppressedTokens([2, 4]), [1], [2]) == [[2, 4], [2, 4]]
    assert _applied(MinNewTokens(2, END), [1]) == [[END]]
    assert _applied(MinNewTokens(2, END), [1, 1]) == [[]]


def test_processors_are_those_of_the_options_in_the_order_of_hugging_face() -> None:
    assert processors_for(sentence_params(), END) == []
    params = sentence_params(
        repetition_penalty=1.5, no_repeat_ngram_size=2, suppress_phrases=((1, 2),), min_new_tokens=3,
        suppress_tokens=(4,), target_prefix=(1, 2),
    )  # fmt: skip
    assert processors_for(params, END) == [
        RepetitionPenalty(np.float32(1.5)),
        NoRepeatedNgram(2),
        SuppressedPhrases(((1, 2),)),
        MinNewTokens(5, END),  # with the prefix
        SuppressedTokens([4]),
    ]
