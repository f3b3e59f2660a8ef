import pytest

from server.text.segmentation.clauses import longest_piece


@pytest.mark.parametrize(
    ("text", "limit", "piece"),
    [
        ("it rained, so we left", 15, "it rained,"),
        ("a, bcdefghi jklm", 14, "a, bcdefghi "),  # the clause is shorter than a quarter
        ("abc, efgh ijkl mn", 16, "abc,"),  # exactly a quarter
        ("abc, efgh ijklmno pq", 19, "abc,"),
        ("abc, efgh ijklmno pqr", 20, "abc, efgh ijklmno "),
        ("we stayed because it rained", 20, "we stayed "),
        ("one two three", 9, "one two "),
        ("abcdefgh", 3, "abc"),
        ("3,000.50", 5, "3,000"),
        ("今天，天气好", 4, "今天，"),
        ("ab\U0001f1e9\U0001f1ea\U0001f1e9\U0001f1ea", 5, "ab\U0001f1e9\U0001f1ea"),
    ],
)
def test_a_piece_ends_at_a_clause_a_conjunction_a_space_or_a_grapheme(text: str, limit: int, piece: str) -> None:
    assert text[: longest_piece(text, lambda part: len(part) <= limit, "en")] == piece


def test_a_piece_has_a_character_though_nothing_fits() -> None:
    assert longest_piece("abc", lambda _: False, "en") == 1
