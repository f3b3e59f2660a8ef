import pytest

from server.text.items.quotation_marks import quotation_mark


@pytest.mark.parametrize(
    ("mark", "opens", "source", "target", "expected"),
    [
        ("“", True, "en", "de", "„"),
        ("”", False, "en-GB", "de", "“"),
        ("“", False, "de", "en", "”"),
        ("„", True, "de", "es", "«"),
        ('"', True, "en", "de", '"'),
        ("«", True, "de", "en", "«"),
        ("“", True, "en", "fr", "“"),
        ("”", True, "sv", "en", "“"),
        ("…", False, "de", "en", "…"),
    ],
)
def test_quotation_marks_are_those_of_the_target(
    mark: str, opens: bool, source: str, target: str, expected: str
) -> None:
    assert quotation_mark(mark, opens, source, target) == expected
