import numpy as np
import pytest

from server.text.protection.word_alignment import by_words, identity_links, links, words_of


@pytest.mark.parametrize(
    ("text", "cuts", "expected"),
    [
        ("It's the dog-house.", (), ["It's", "the", "dog", "-", "house", "."]),
        ("don’t e\u0301a", (), ["don’t", "e\u0301a"]),
        ("ab cd", (1, 2, 4), ["a", "b", "c", "d"]),
        ("abc", (0, 3), ["abc"]),
        ("abc", (1, 2, 1), ["a", "b", "c"]),
        ("1,250.50 or 2.", (), ["1,250.50", "or", "2", "."]),
        ("20,000", (3,), ["20,", "000"]),
        ("", (1,), []),
    ],
)
def test_words_and_marks_of_a_text(text: str, cuts: tuple[int, ...], expected: list[str]) -> None:
    assert [text[slice(*word)] for word in words_of(text, cuts)] == expected


def test_without_attention_positions_decide() -> None:
    found = links(["a", "b", "c"], ["x", "y", "z"], None)
    assert found.argmax(axis=1).tolist() == [0, 1, 2]
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(found[0, 0] / found[0, 2], np.exp(3), rtol=1e-5)


def test_clear_attention_outweighs_positions() -> None:
    attention = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], np.float32)
    assert links(["a", "b", "c"], ["x", "y", "z"], attention).argmax(axis=1).tolist() == [2, 0, 1]


def test_equal_words_and_anchors_are_certain() -> None:
    found = links(["a", "7", "c"], ["x", "y", "7"], None, [(0, 2)])
    assert found[2].tolist() == [0, 1, 0]
    assert found[0].tolist() == [0, 0, 1]
    assert found[1].argmax() == 0  # the others have their counterparts


def test_no_words_have_no_links() -> None:
    assert links([], ["a"], None).shape == (1, 0)
    assert links(["a"], [], None).shape == (0, 1)


@pytest.mark.parametrize("size", [0, 1, 4])
def test_words_of_a_text_that_stays_are_their_own_counterparts(size: int) -> None:
    found = identity_links(size)
    assert found.tolist() == np.eye(size).tolist()
    assert not found.flags.writeable


def test_attention_of_tokens_becomes_that_of_words() -> None:
    attention = np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], np.float32)
    # One target word of two tokens; source words of two tokens and of one.
    found = by_words(attention, [(0, 2), (2, 4)], [(0, 4)], [(0, 1), (1, 2), (3, 4)], [(0, 2), (3, 4)])
    np.testing.assert_allclose(found, [[(0.75 + 0.2) / 2, (0.25 + 0.8) / 2]], rtol=1e-5)
