import pytest

from server.documents.markup.line_wrapping import rewrap, with_one_line_end, wrap_like


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("aa bb cc", 5, "aa bb|cc"),
        ("aa bb cc", 4, "aa|bb|cc"),
        ("aaaaaa b", 3, "aaaaaa|b"),
        ("aa - bb cc", 4, "aa -|bb|cc"),  # a list would begin
        ("a", 0, "a"),
    ],
)
def test_lines_are_as_long_as_the_width_at_most_and_begin_with_letters(text: str, width: int, expected: str) -> None:
    assert rewrap(text.split(), width, "|") == expected


def test_any_word_may_begin_a_line_if_nothing_forbids_it() -> None:
    assert rewrap(["aa", "-", "bb"], 3, "|", lambda _: True) == "aa|-|bb"


@pytest.mark.parametrize(
    ("text", "lengths", "expected"),
    [
        ("a b c d e f", [1, 1, 1], "a b|c d|e f"),
        ("a b c d e f", [2, 1], "a b c d|e f"),
        ("a b", [9, 1, 1], "a|b"),
        ("a b c", [9, 1, 1], "a|b|c"),
        ("a b c d", [0, 0], "a|b c d"),
        ("a - b - c d", [1, 1], "a - b -|c d"),
    ],
)
def test_lines_have_their_shares_and_as_many_as_there_are_words_for(
    text: str, lengths: list[int], expected: str
) -> None:
    assert wrap_like(text.split(), lengths, ["|"] * (len(lengths) - 1)) == expected


def test_each_line_has_the_end_of_its_source() -> None:
    assert wrap_like(["a", "b", "c"], [1, 1, 1], ["|", "/"]) == "a|b/c"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("", "\n")),
        ("a\r\nb\r\nc\n", ("a\nb\nc\n", "\r\n")),
        ("a\rb\r\nc\r\r", ("a\nb\nc\n\n", "\r")),
    ],
)
def test_the_line_end_of_most_lines_is_that_of_a_file(text: str, expected: tuple[str, str]) -> None:
    assert with_one_line_end(text) == expected
