import pytest

from server.text.name_lists import NameLists

_COMMON = frozenset(("the", "terms", "of", "use", "privacy", "policy", "red", "house", "dog"))


def _cost(word: str) -> float:
    """Return a low cost of common words in lower case, and of nothing else."""
    return 9.0 if word in _COMMON else 20.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna Schmidt, Peter Miller", True),
        ("Anna Schmidt und Peter Miller.", True),
        ("Anna Schmidt / Peter Miller / Maria Rossi", True),
        ("Anna Schmidt - Peter Miller", True),
        ("Ludwig van Beethoven, Anna M. Schmidt", True),
        ("Jean-Luc O’Neil, Anna Schmidt", True),
        ("Anna Schmidt", False),  # one name is no list
        ("Anna, Peter", False),
        ("Anna Maria Louise von Schmidt, Peter Miller", False),  # five words
        ("Anna Maria von Schmidt, Peter Miller", True),
        ("Von der Leyen Anna, Peter Miller", True),
        ("Anna von, Peter Miller", False),
        ("von Anna, Peter Miller", False),
        ("anna Schmidt, Peter Miller", False),
        ("Anna SCHMIDT, Peter Miller", False),
        ("Anna Schmidt, Peter 2nd", False),
        ("Anna m. Schmidt, Peter Miller", False),
        ("Terms Of Use, Privacy Policy", False),
        ("", False),
        ("Anna Schmidt, " * 142 + "Peter Miller", True),
        ("Anna Schmidt, " * 143 + "Peter Miller", False),  # more than 2,000 characters
    ],
)
def test_lists_of_names_have_words_with_capitals_that_the_language_lacks(text: str, expected: bool) -> None:
    assert NameLists(_cost).is_list(text) is expected


def test_a_name_may_be_a_word_that_is_as_frequent_with_a_capital() -> None:
    costs = {"House": 11.0, "Dog": 11.5, "house": 9.0, "dog": 9.0}
    lists = NameLists(lambda word: costs.get(word, 20.0))
    assert lists.is_list("Anna House, Peter House")
    assert not lists.is_list("Anna Dog, Peter Dog")


def test_a_vocabulary_without_words_recognises_no_names() -> None:
    assert not NameLists(lambda _: 0.0).is_list("Anna Schmidt, Peter Miller")
